// What is said of a batch that does not fit.
#include "render/feasibility.h"

#include <gtest/gtest.h>

namespace h3 {
namespace {

BatchNeeds needs() {
  BatchNeeds n;
  n.largest = "long";
  n.weights = 100;
  n.shared = true;
  n.host = 50;
  n.device = 30;
  n.sounds = 5;
  n.checkpoints = 10;
  return n;
}

NodeRoom room() {
  NodeRoom r;
  r.host = 150;
  r.shared = 100;
  r.device = 30;
  r.disk = 15;
  return r;
}

std::string refusal(const BatchNeeds& n, const NodeRoom& r) {
  return judge(n, r).refusal;
}

TEST(Feasibility, WhatFitsExactlyFits) {
  EXPECT_EQ(refusal(needs(), room()), "");
  EXPECT_EQ(judge(needs(), room()).warning, "");
}

TEST(Feasibility, EachShortageIsNamed) {
  NodeRoom r = room();
  r.host = 149;
  EXPECT_NE(refusal(needs(), r).find("weights and activations"), std::string::npos) << refusal(needs(), r);
  r = room();
  r.shared = 99;
  EXPECT_NE(refusal(needs(), r).find("/dev/shm"), std::string::npos) << refusal(needs(), r);
  r = room();
  r.device = 29;
  EXPECT_NE(refusal(needs(), r).find("the GPU"), std::string::npos) << refusal(needs(), r);
  r = room();
  r.disk = 4;
  EXPECT_NE(refusal(needs(), r).find("WAV"), std::string::npos) << refusal(needs(), r);
}

TEST(Feasibility, CheckpointsWithoutRoomAreAWarning) {
  NodeRoom r = room();
  r.disk = 14;
  EXPECT_EQ(refusal(needs(), r), "");
  EXPECT_NE(judge(needs(), r).warning.find("checkpoints"), std::string::npos);
}

TEST(Feasibility, AScratchFolderTakesTheWeights) {
  NodeRoom r = room();
  r.host = 50;
  r.shared = 0;
  r.scratch = 100;
  EXPECT_EQ(refusal(needs(), r), "");
}

TEST(Feasibility, NothingLeftNeedsNothing) {
  EXPECT_EQ(refusal(BatchNeeds(), NodeRoom()), "");
}

TEST(Residency, LeavesRoomForTheSceneAtWork) {
  constexpr std::size_t kGiB = std::size_t{1} << 30;
  EXPECT_EQ(fitting_residency(40 * kGiB, 20 * kGiB, 80 * kGiB), Residency::resident);
  EXPECT_EQ(fitting_residency(40 * kGiB, 40 * kGiB, 80 * kGiB), Residency::streamed);
  EXPECT_EQ(fitting_residency(100 * kGiB, 1 * kGiB, 80 * kGiB), Residency::streamed);
}

}  // namespace
}  // namespace h3

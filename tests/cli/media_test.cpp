// Keyframes, guides and references as scenes give them: what is refused before anything is loaded, what is warned of,
// and what the program makes of files.
#include <gtest/gtest.h>

#include "cli/media_files.h"
#include "media/png.h"

namespace h3::test {
namespace {

class Media : public ::testing::Test {};
TEST_F(Media, Placeholder) {}
}  // namespace
}  // namespace h3::test

// Under mpirun, every rank a group of its own: a bell is heard by all others, also one that rings when the others are
// done already, and none leaves before all are done.
#include <unistd.h>

#include "base/error.h"
#include "parallel/cluster.h"
#include "parallel/group_bell.h"
#include "parallel/rank_group.h"

using namespace h3;

static void wait_for_all(GroupBell& bell) {
  while (!bell.all_done()) ::usleep(1000);
  bell.close();
}

int main(int argc, char** argv) {
  Cluster cluster(&argc, &argv);
  const RankGroup group(cluster, 1);
  CHECK_EQ(group.count(), cluster.size());
  CHECK_EQ(group.index(), cluster.rank());
  const int last = cluster.size() - 1;
  {
    GroupBell silent(group.leaders());
    CHECK_EQ(silent.heard(), 0);
    wait_for_all(silent);
    CHECK_EQ(silent.heard(), 0);
  }
  {
    GroupBell bell(group.leaders());
    if (cluster.rank() == last) bell.ring(2);
    while (bell.heard() == 0) ::usleep(1000);
    if (cluster.rank() == 0) bell.ring(3);  // some have heard the 2 alone by now, some not
    wait_for_all(bell);
    CHECK_EQ(bell.heard(), cluster.size() == 1 ? 2 : 3);
  }
  {
    GroupBell late(group.leaders());
    late.all_done();  // says that this group is done, before it rings
    if (cluster.rank() == last) late.ring(1);
    wait_for_all(late);
    CHECK_EQ(late.heard(), 1);
  }
  return 0;
}

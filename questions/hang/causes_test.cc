#include "ott/questions/hang/causes.h"

#include <algorithm>
#include <map>
#include <regex>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "absl/strings/string_view.h"
#include "absl/strings/strip.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "job_for_test.h"
#include "ott/questions/hang/diagnosis.h"

namespace ott {
namespace {

using testing::Contains;
using testing::HasSubstr;
using Process = RankState::Process;
using Progress = JobOperation::Progress;

constexpr int64_t kSecond = JobForTest::kSecond;

// Jobs in words, and how they are judged. First come groups: "a=0123.7" has ranks 0 to 3, of which each
// completed all up to #7. "untimed" and "no_entry" are of jobs that do not record times, or when operations
// begin. Then come the ranks: "sum:a#8" entered #8 of group a as "sum", and "a#3-8/101=64c!" completed #3 to
// #8 in iteration 101, of size 64, alone; q: only enqueued. "send>2" and "recv<2" stand; "@load" is the
// place, "i7" the iteration, "t990" the time of the last sign of life, "h1" the host, and "cpu97" the share
// of a CPU that it takes.
constexpr char kScenarios[] = R"(
# Ranks never came.
a=0123.411 | a#412 t999 | a#412 | | a#412 t990
  HANGING NEVER_CAME 2
  says rank 2 never came to sum #412 of group a (iteration 103), where ranks 0, 1, 3 have waited for 50 s; it is in "data" since 100 s
a=0123.411 | a#412 | | t990 | a#412
  HANGING NEVER_CAME 1, NEVER_CAME 2
  says ranks 1, 2 never came
a=013 b=23 | a#9 | a#9 | b#9 |
  HANGING NEVER_CAME 3
  says rank 3 never came to sum #9 of group a
a=012 b=234 | a#1 | a#1 | b#7 | b#7 | recv<5 |
  HANGING NEVER_CAME 5; held up 0 1 2 3
a=01 b=123 | a#1 | b#7 | | b#7
  HANGING NEVER_CAME 2; held up 0
  says ; rank 0 waits for those that wait for it
# Nobody is held up by the one that is known, if others wait for one that is not.
a=01 b=12 c=34 | a#1 | b#1 | unread | c#1 |
  HANGING NEVER_CAME 4; unknown 2
a=0123.50 | a#51! | a#51c! a#52 | | a#51c! a#52
  HANGING NEVER_CAME 2
a=0123.50 | a#51! | a#51c! a#52 | unread | a#51c! a#52
  CANNOT_TELL; unknown 2
a=01 | recv<1 | unplaced
  HANGING NEVER_CAME 1
a=01.411 | recv<1 |
  HANGING NEVER_CAME 1
a=01 | recv<1 | send>0
  CANNOT_TELL
a=01 | recv<1 | send>0q
  HANGING DEVICE_STANDS 1
a=0123.411 | a#412 ended | a#412 ended | ended | a#412 ended
  HANGING NEVER_CAME 2
a=0123.411 | a#412 | a#412 | a#412q | a#412
  HANGING DEVICE_STANDS 2
no_entry a=0123.411 | a#412 | a#412 | a#412q | a#412
  HANGING NEVER_CAME 2
a=0123.411 | a#412 | a#412 | moves i102 | a#412
  NOT_HANGING SLOW 2
  says ; it is in "data" since 100 s, 1 iteration behind
a=0123.411 | a#412 | a#412 i110 | moves i102 | a#412
  NOT_HANGING SLOW 2
  says , 8 iterations behind
# In different places, one may wait for the other, unless it is in an earlier iteration.
a=0123.411 | @recv | a#412 | | a#412
  CANNOT_TELL; suspects 0 2
  says cannot tell: rank 2 is in "data" since 100 s, rank 0 is in "recv" since 100 s, where others wait for them at sum #412; one of them may
a=0123.411 | @recv | a#412 | i102 | a#412
  HANGING NEVER_CAME 2
  note rank 0 is missed as well, but ahead: whatever is not declared there may wait for rank 2
a=0123.411 | @recv | a#412 | i-1 | a#412
  CANNOT_TELL; suspects 0 2
untimed a=0123.411 | @recv | a#412 | | a#412
  HANGING NEVER_CAME 0, NEVER_CAME 2
a=01 b=23 | a#1 | dead @load | b#1 |
  HANGING DEAD 1, NEVER_CAME 3
a=05 b=15 c=25 | a#1 | b#1 | c#1 | | | 
  HANGING NEVER_CAME 5
# Most ranks in one place wait for what is outside, or compute.
a=0123.411 | a#412 | | |
  HANGING OUTSIDE
  says everybody waits for what is outside of the job: ranks 1-3 are in "data" since 100 s, and the others wait for them
a=0123.411 | a#412 | cpu9 | cpu97 | cpu97
  HANGING OUTSIDE
a=012.411 | a#412 | |
  HANGING OUTSIDE
a=01.411 | a#412 |
  HANGING NEVER_CAME 1
a=0123.411 | a#412 | cpu99 | cpu10 | cpu97
  NOT_HANGING
  says (10 % of a CPU or more)
a=0123.411 | a#412 | a#412 | cpu97 | a#412
  HANGING NEVER_CAME 2
  says since 100 s, where it computes
a=0123.411 | a#412 | cpu97 | cpu97 | cpu97
  NOT_HANGING
  says ranks 1-3 compute in "data" since 100 s (97 % of a CPU or more), and the others wait for them; if
a=0123.411 | a#412 | cpu97 | cpu97 |
  HANGING OUTSIDE
a=01234 | a#412 | cpu97 | cpu97 | cpu97 | unread
  CANNOT_TELL; unknown 4
a=0123 | a#1 | @ | @ | @
  HANGING NEVER_CAME 1, NEVER_CAME 2, NEVER_CAME 3
a=0123 | a#1 | | | dead
  HANGING DEAD 3, NEVER_CAME 1, NEVER_CAME 2
# Ranks are gone.
a=0123.411 | a#412 | a#412 | a#412 dead | a#412
  HANGING DEAD 2
a=012 | dead | |
  HANGING DEAD 0
a=01234 | a#1 | dead | left | stopped | silent
  HANGING DEAD 1, LEFT 2, SILENT 4, STOPPED 3
  says ; and 1 more
a=0123.411 | a#412 t970 | a#412 t970 | stopped | a#412 t970
  HANGING STOPPED 2
a=0123.411 | a#412 | a#412 | left dead @ | a#412
  HANGING LEFT 2
  says rank 2 left training without ending it; ranks 0, 1, 3 have waited for 50 s for it at sum #412 of group a (iteration 103); it was in iteration 103
a=0123.411 | a#412 dead | a#412 dead | left t1040 | a#412 dead
  HANGING LEFT 2
a=0123.411 | a#412 left | a#412 left | left t960 | a#412 left
  HANGING LEFT 2
# One that waited for a rank which stands may be gone for that.
a=0123.411 | a#412 dead | a#412 | | a#412
  HANGING NEVER_CAME 2
  note rank 0 is gone, too, but waited for others then: that may be a consequence
a=0123.411 | a#412 dead | a#412 | moves | a#412
  HANGING DEAD 0
a=0123.411 | a#412 dead | a#412 | unread | a#412
  CANNOT_TELL; unknown 2
  note rank 0 is gone, too, but waited for others then: that may be a consequence
a=01 b=12 c=02 | a#9 dead | b#9 | c#9
  HANGING OPPOSITE_ORDER
a=01 | a#1 dead t960 |
  CANNOT_TELL
  says cannot tell: ranks wait, and for whom is not recorded
# The one that went first is to blame of two that are gone, if that is known.
a=01 | a#1 dead | dead t998
  HANGING DEAD 1
a=01 | a#1 dead | dead t999
  HANGING DEAD 0, DEAD 1
a=01 | a#1 dead h1 | dead h2 t989
  HANGING DEAD 1
a=01 | a#1 dead h1 | dead h2 t991
  HANGING DEAD 0, DEAD 1
a=01 | a#1 left | left
  HANGING LEFT 0, LEFT 1
a=01 | a#1 left | left t999
  HANGING LEFT 1
a=01 | a#1 left h1 | left h2 t989
  HANGING LEFT 1
a=01 | a#1 left h1 | left h2 t991
  HANGING LEFT 0, LEFT 1
a=012 | left | left t999 | left
  NOT_HANGING
  says not hanging: ranks 0-2 have left training without ending it, rank 1 first, in iteration 103
a=01 | left | finished
  NOT_HANGING
  says not hanging: rank 0 has left training without ending it, in iteration 103
# Calls that differ come before the ends of ranks that came to them.
a=012.411 | a#412 dead | mean:a#412 | a#412c
  HANGING DIFFERENT_OPERATION 1
  says rank 1 as "mean" called #412 of group a, which ranks 0, 2 as "sum" called
  note rank 0 is gone, but came there before: that may be a consequence
a=01 | a#412 dead | mean:a#412c left
  HANGING DIFFERENT_OPERATION
a=012 | a#1/1c a#2/2c a#3/3 dead | a#1/1c a#2/3c mean:a#3/4 | a#1/1c a#2/2c a#3/3
  HANGING DIFFERENT_ITERATIONS 1
a=012 | a#1/1c a#2/2c a#3/3 dead | a#1/1c a#2/3c a#3/4 | a#1/1c a#2/2c a#3/3
  HANGING DEAD 0
a=012.411 | dead | mean:a#412 | a#412
  HANGING DEAD 0
# A rank that left in what another never came to, as that had left, has failed there.
a=012.411 | left t990 | a#412c left | a#412c
  HANGING LEFT 0
  note rank 1 is gone, too, but waited for others then: that may be a consequence
a=012.411 | left | a#412c! left | a#412c
  HANGING LEFT 0, LEFT 1
# So has one that left there, and in what it still waited, as another was killed, but not if that lived on or was ended.
a=012.411 | dead | a#412c left | a#412c
  HANGING DEAD 0
  note rank 1 is gone, too, but waited for others then: that may be a consequence
a=012.411 | dead t999 | a#412 left | a#412
  HANGING DEAD 0
  note rank 1 is gone, too, but waited for others then: that may be a consequence
a=012.411 | dead t1001 | a#412c left | a#412c
  HANGING DEAD 0, LEFT 1
a=012.411 | dead t1001 | a#412 left | a#412
  HANGING DEAD 0, LEFT 1
a=012.411 | dead killed | a#412c left | a#412c
  HANGING DEAD 0, LEFT 1
a=012.411 | left t990 | a#412c dead | a#412c
  HANGING DEAD 1, LEFT 0
a=012.411 | a#412c left t990 | a#412c left | a#412c
  HANGING LEFT 0, LEFT 1
# Waits end at one that is gone, whomever it waited for itself.
a=01 b=12 c=23 | a#1 | b#1 | c#1 dead | moves
  HANGING DEAD 2; held up 0
# Ranks have finished.
a=0123.411 | a#412 | a#412 | finished dead moves | a#412
  HANGING DIFFERENT_ITERATIONS 2
  says ranks 0, 1, 3 wait in sum #412 of group a (iteration 103), and rank 2 has finished training after 103 iterations
a=01234.411 | a#412 | a#412 | finished | finished | a#412
  HANGING DIFFERENT_ITERATIONS 2 3
  says and ranks 2, 3 have finished training
a=01234.411 | a#412 | a#412 | finished | finished | unread
  HANGING DIFFERENT_ITERATIONS; unknown 4
a=0123.411 | a#412/50 | a#412/50 | finished | a#412/50
  HANGING NEVER_CAME 2
a=0123.411 | a#412/-1 | a#412/-1 | finished | a#412/-1
  HANGING DIFFERENT_ITERATIONS 2
a=0123 | a#412/50 | finished | finished | finished
  HANGING DIFFERENT_ITERATIONS 0
a=01.411 | a#412/50 | finished
  HANGING DIFFERENT_ITERATIONS
a=0123.411 ott=0123 | finished ott#1 | a#412 | finished ott#1 | finished ott#1
  HANGING DIFFERENT_ITERATIONS 1
  says rank 1 waits in
# The job has a majority if the group has none.
a=01 | a#412 | finished | finished | finished
  HANGING DIFFERENT_ITERATIONS 0
a=01234 | a#412 | | finished | finished | finished
  HANGING DIFFERENT_ITERATIONS 0, NEVER_CAME 1
a=01 | a#412 | finished | |
  HANGING DIFFERENT_ITERATIONS 1
a=01 | a#412 | finished | unread | unread
  HANGING DIFFERENT_ITERATIONS
# Ranks never left.
untimed no_entry a=0123 | a#1-6c a#7 | a#1-4c a#5 a#6q | a#1-6c a#7 | a#1-6c a#7
  HANGING NEVER_LEFT 1
  says rank 1 never left sum #5 of group a (iteration 103); it is in "sum" since 50 s
a=01234 | a#1-6c a#7 | a#1-4c a#5 | unread | a#1-6c a#7 | a#1-6c a#7
  HANGING NEVER_LEFT 1; unknown 2
a=0123 | a#1-6c a#7 | a#1-4c a#5 moves | a#1-6c a#7 | a#1-6c a#7
  CANNOT_TELL
a=0123 b=14 | a#1-6c a#7 | a#1-4c a#5 b#3 dead | a#1-6c a#7 | a#1-6c a#7 |
  HANGING NEVER_CAME 4; held up 0 2 3
a=012 b=012 | a#1-5c b#1-3c a#6 | a#1-4c b#1-2c a#5 b#3 | a#1-5c b#1-3c a#6
  HANGING NEVER_LEFT 1
  says never left sum #5 of group a
a=012 b=012 | a#1-5c b#1-3c a#6 | a#1-4c b#1-2c b#3 a#5 | a#1-5c b#1-3c a#6
  HANGING NEVER_LEFT 1
  says never left sum #3 of group b
a=0123.4 | a#5 | a#5c a#6 | a#5c a#6 | a#5c a#6
  HANGING NEVER_LEFT 0
a=0123.4 | a#5 | a#5 | a#5c a#6 | a#5c a#6
  HANGING NEVER_LEFT 0, NEVER_LEFT 1
a=0123.4 | a#5 | a#5 | a#5 | a#5c a#6
  CANNOT_TELL
a=0123.4 | a#5! | a#5c! a#6 | a#5c! a#6 | a#5c! a#6
  HANGING NEVER_LEFT 0
a=0123.4 | a#5! | a#5! | a#5c! a#6 | a#5c! a#6
  CANNOT_TELL
# Operations differ.
a=0123.411 | a#412 | a#412 | mean:a#412 | a#412
  HANGING DIFFERENT_OPERATION 2
a=01234 | a#1 | mean:a#1 | a#1 | max:a#1 | a#1
  HANGING DIFFERENT_OPERATION 1 3
a=0123 | a#1 | mean:a#1 | a#1 | max:a#1
  HANGING DIFFERENT_OPERATION
# Ranks that have not called it may call it as the minority does.
a=01234 | a#1 | a#1 | mean:a#1 | |
  HANGING DIFFERENT_OPERATION
a=01234 | a#1 | a#1 | mean:a#1 | unread | unread
  HANGING DIFFERENT_OPERATION
a=01234 | a#1 | a#1 | mean:a#1 | unread | a#1
  HANGING DIFFERENT_OPERATION 2
a=01234 | a#5=8 | a#5=9 | a#5 | a#5=8 | a#5=8
  HANGING DIFFERENT_SIZE 1
  says rank 1 with size 9 called #5 of group a (sum), which ranks 0, 3, 4 with size 8 called
# A rank that always differs does so by habit; one that does as most has none.
a=0123 | root:a#4c root:a#5 | a#4c a#5 | a#4c | a#4c a#5
  HANGING NEVER_CAME 2
a=0123 | a#4=9c a#5=9 | a#4=1c a#5=1 | a#4=1c | a#4=1c a#5=1
  HANGING NEVER_CAME 2
a=0123 | root:a#4=1c a#5=9 | a#4=1c a#5=1 | a#4=1c a#5=1 | a#4=1c a#5=1
  HANGING DIFFERENT_SIZE 0
a=0123 | root:a#4c a#5 | a#4c a#5 | a#4c a#5 | a#4c mean:a#5
  HANGING DIFFERENT_OPERATION 3
a=01234 | root:a#4c root:a#5 | a#4c a#5 | a#4c a#5 | a#4c a#5 | a#4c mean:a#5
  CANNOT_TELL
a=0123 | root:a#4 root:a#5 | a#4c a#5 | a#4c a#5 | a#4c a#5
  HANGING DIFFERENT_OPERATION 0
  says #4
# What was left out shifts the iterations of all that follows.
a=012 | a#1/1c a#2/2c a#3/3c a#4/4 | a#1/1c a#2/2c a#3/3c a#4/4 | a#1/1c a#2/3c a#3/4c
  HANGING DIFFERENT_ITERATIONS 2
  says rank 2 in iteration 3 called #2 of group a, which ranks 0, 1 in iteration 2 called: there it left out one
a=012 | a#1/1c a#2/2c a#3/3 | a#1/1c a#2/2c a#3/3 | a#1/1c a#2/3c mean:a#3/4
  HANGING DIFFERENT_ITERATIONS 2
a=012 | a#1/2c a#2/3 | a#1/2c a#2/3 | a#1/1c
  HANGING DIFFERENT_ITERATIONS 2
  says : there it called one more before
a=012 | a#2/2c a#3/3c a#4/4 | a#3/3c a#4/4 | a#3/4c
  HANGING DIFFERENT_ITERATIONS 2
  says : there or earlier, which is not recorded, it left out one before
a=012 | a#2/2c a#3/3c a#4/4 | a#2/2c a#3/3c a#4/4 | a#2/2c a#3/4c
  HANGING DIFFERENT_ITERATIONS 2
  says : there it left out one before
a=012 | a#3/3c a#4/4c a#5/5 | a#3/3c a#4/4c a#5/5 | a#3/4c a#4/4c
  HANGING NEVER_CAME 2
a=012 | a#3/-1c a#4/4 | a#3/3c a#4/4 | a#3/3c
  HANGING NEVER_CAME 2
# Ranks wait in a circle.
a=0123 b=0123 | a#9 | a#9 | a#9 | b#9
  HANGING OPPOSITE_ORDER 3
  says ranks wait in a circle: rank 0 in sum #9 of group a (iteration 103) for rank 3; rank 3 in sum #9 of group b (iteration 103) for rank 0; rank 3 calls the groups in another order than the rest
a=01 b=12 c=02 | a#9 | b#9 | c#9
  HANGING OPPOSITE_ORDER
  says ; they call the groups in opposite order, and nothing tells which order is wrong
a=01 | recv<1 | recv<0
  HANGING OPPOSITE_ORDER
  says ; all of them receive and none sends, and nothing tells who left a send out
a=01 | send>1 | send>0
  HANGING OPPOSITE_ORDER
  says ; all of them send and none receives, and nothing tells who is to receive first
a=012 | recv<1 | a#9 | a#9
  HANGING OPPOSITE_ORDER
  says ; nothing tells which of them calls in the wrong order
# Whoever waits in a check of this library, and not in what comes before it, never came to that.
a=012 ott=012 | a#1 | ott#1! | a#1
  HANGING NEVER_CAME 1
a=012 ott=012 | ott#1! | a#1 | ott#1!
  HANGING OPPOSITE_ORDER 1
a=01 ott=01 | ott#1! | a#1
  HANGING OPPOSITE_ORDER
no_entry a=01 b=12 c=02 | a#9 | b#9 | c#9
  HANGING OPPOSITE_ORDER
no_entry a=01 b=01 | a#9 | unplaced b#9
  CANNOT_TELL
  note ranks 0, 1 wait in a circle
no_entry a=01 b=12 c=02 | a#9 | b#9 | c#9 b#9q
  CANNOT_TELL
no_entry a=01 b=12 c=02 | a#9 | b#9 a#9q | c#9
  CANNOT_TELL
  note ranks 0-2 wait in a circle, as far as can be told without knowing when operations began
# Nobody is to blame.
a=0123.411 | a#412 | a#412 | a#412 | a#412
  CANNOT_TELL
  says cannot tell: ranks 0-3 all came to sum #412 of group a (iteration 103), and none left it: the network
a=0123.411 b=0123 | a#412 b#1-7c | a#412 b#1-7c | a#412 b#1-7c | a#412 b#1-6c
  CANNOT_TELL; suspects 3
  note rank 3 called less since than the others there
a=0123.411 b=0123 | a#412 b#1-7c | a#412 b#1-7c | a#412 b#1-6c | a#412 b#1-6c
  CANNOT_TELL
a=0123.411 | a#412 | a#412 | unread | a#412
  CANNOT_TELL; unknown 2
  says cannot tell: the waits lead to rank 2, of which nothing is known: no recorder
a=0123.411 | a#412 | a#412 | | unread
  HANGING NEVER_CAME 2; unknown 3
  note others wait for rank 3, of which nothing is known
a=01 b=23 | a#1 | | b#1 | unplaced
  HANGING NEVER_CAME 1; unknown 3
  note others wait for rank 3, and where it is in that group is not recorded
# Where nobody waits for long.
| | | 
  HANGING OUTSIDE
  says everybody waits for what is outside of the job: ranks 0-2 are in "data" since 100 s
| cpu97 | cpu97 | cpu140
  NOT_HANGING
  says not hanging: ranks 0-2 compute in "data" since 100 s (97 %
| cpu97 | cpu97 | 
  HANGING OUTSIDE
| unread | | 
  CANNOT_TELL; unknown 0
  says cannot tell: no rank that can be read waits for long, but rank 0 cannot: no recorder
| finished | finished | 
  CANNOT_TELL
  says no rank waits in a measurement that is known to be collective; rank 2 is in "data" since 100 s
| @ | @
  CANNOT_TELL
  says cannot tell: nothing moves
| @load | | 
  CANNOT_TELL
  says cannot tell: nothing moves
| moves | | 
  NOT_HANGING
  says no rank has waited for more than 0.00 s (limit 30 s)
| moves | moves @load
  NOT_HANGING
| moves
  NOT_HANGING
untimed | |
  NOT_HANGING
  says not hanging: no rank waits for another
untimed |
  CANNOT_TELL
  says the dump of one rank does not say what others wait for
| ended moves | finished
  CANNOT_TELL
  says the job ended before its training did
| ended | ended @load
  CANNOT_TELL
  says nothing moved before the end, and no rank waited in a measurement that is known to be collective; rank
| finished | finished
  NOT_HANGING
  says not hanging: all ranks have finished
a=01.411 | finished a#412 | finished
  NOT_HANGING
  says not hanging: all ranks have finished
a=01.411 | finished a#412 | moves
  NOT_HANGING
)";

struct Scenario {
  std::vector<std::string> groups;
  std::vector<std::string> ranks;
  std::string judged;
  std::string says;
  std::string note;
};

std::vector<Scenario> ReadScenarios() {
  std::vector<Scenario> scenarios;
  for (const absl::string_view line : absl::StrSplit(kScenarios, '\n', absl::SkipEmpty())) {
    absl::string_view words = line;
    if (words[0] == '#') continue;
    if (absl::ConsumePrefix(&words, "  says ")) {
      scenarios.back().says = std::string(words);
    } else if (absl::ConsumePrefix(&words, "  note ")) {
      scenarios.back().note = std::string(words);
    } else if (absl::ConsumePrefix(&words, "  ")) {
      scenarios.back().judged = std::string(words);
    } else {
      std::vector<std::string> cells = absl::StrSplit(words, '|');
      Scenario& scenario = scenarios.emplace_back();
      scenario.groups = absl::StrSplit(cells[0], ' ', absl::SkipEmpty());
      scenario.ranks.assign(cells.begin() + 1, cells.end());
    }
  }
  return scenarios;
}

// Rank i of a scenario is rank to[i] of the job.
class JobInWords {
 public:
  JobInWords(const Scenario& scenario, std::vector<int> to)
      : test_(static_cast<int>(to.size())), to_(std::move(to)) {
    for (const std::string& word : scenario.groups) AddGroup(word);
    for (size_t rank = 0; rank < scenario.ranks.size(); ++rank) {
      for (const absl::string_view word : absl::StrSplit(scenario.ranks[rank], ' ', absl::SkipEmpty())) {
        Add(to_[rank], std::string(word));
      }
    }
  }

  const JobState& job() const { return test_.job; }

 private:
  void AddGroup(const std::string& word) {
    if (word == "untimed") test_.job.has_times = false;
    if (word == "no_entry") test_.job.records_entry = false;
    static const std::regex format(R"((\w+)=(\d+)\.?(\d*))");
    std::smatch match;
    if (!std::regex_match(word, match, format)) return;
    std::vector<int> members;
    for (const char digit : match[2].str()) members.push_back(to_[digit - '0']);
    std::sort(members.begin(), members.end());
    const int group = test_.Group(match[1], members);
    group_[match[1]] = group;
    for (const int member : members)
      test_.Complete(member, group, match[3].length() > 0 ? std::stoi(match[3]) : 0);
  }

  void AddOperations(int rank, const std::smatch& match) {
    const std::string last = match[4].matched ? match[4] : match[3];
    for (int64_t i = std::stoi(match[3]); i <= std::stoi(last); ++i) {
      JobOperation& called =
          test_.Call(rank, group_.at(match[2]), i, match[1].matched ? match[1].str() : "sum",
                     match[7] == "c"   ? Progress::kCompleted
                     : match[7] == "q" ? Progress::kEnqueued
                                       : Progress::kEntered);
      if (match[5].matched) called.iteration = std::stoi(match[5]);
      if (match[6].matched) called.size = std::stoi(match[6]);
      called.synchronizes = match[8].length() == 0;
    }
  }

  void Add(int rank, const std::string& word) {
    static const std::regex operation(
        R"((?:(\w+):)?(\w+)#(\d+)(?:-(\d+))?(?:/(-?\d+))?(?:=(\d+))?([cq]?)(!?))");
    static const std::map<std::string, Process> processes = {{"dead", Process::kDead},
                                                             {"stopped", Process::kStopped},
                                                             {"silent", Process::kSilent},
                                                             {"ended", Process::kUnknown}};
    RankState& state = test_.job.ranks[rank];
    std::smatch match;
    if (std::regex_match(word, match, operation)) {
      AddOperations(rank, match);
    } else if (const auto process = processes.find(word); process != processes.end()) {
      state.process = process->second;
    } else if (word == "left" || word == "finished") {
      (word == "left" ? state.left : state.finished) = true;
    } else if (word == "killed") {
      state.terminated_ns = kSecond;
    } else if (word == "unread") {
      state = RankState();
    } else if (word == "unplaced") {
      state.positions.clear();
    } else if (word.substr(0, 3) == "cpu") {
      state.cpu_share = std::stoi(word.substr(3)) / 100.0;
    } else if (word == "moves") {
      state.last_event_ns = 999 * kSecond;
    } else if (word[0] == 's' || word[0] == 'r') {
      test_.Send(rank, 0, to_[word[5] - '0'],
                 word[0] == 's' ? JobOperation::Direction::kSend : JobOperation::Direction::kReceive);
      if (word.back() == 'q') state.operations.back().progress = Progress::kEnqueued;
    } else if (word[0] == '@') {
      state.place = word.substr(1);
    } else if (word[0] == 'i') {
      state.iteration = std::stoi(word.substr(1));
    } else if (word[0] == 't') {
      state.now_ns = std::stoi(word.substr(1)) * kSecond;
    } else if (word[0] == 'h') {
      state.host = word;
    }
  }

  JobForTest test_;
  const std::vector<int> to_;
  std::map<std::string, int> group_;
};

HangVerdict Diagnose(const Scenario& scenario, const std::vector<int>& to) {
  return DiagnoseHang(JobInWords(scenario, to).job(), {30});
}

std::vector<int> NumbersOf(const Scenario& scenario) {
  std::vector<int> numbers;
  for (size_t i = 0; i < scenario.ranks.size(); ++i) numbers.push_back(static_cast<int>(i));
  return numbers;
}

// The words of a verdict in which rank to[i] is rank i.
std::string InWords(const HangVerdict& verdict, const std::vector<int>& to) {
  const auto list = [&](const char* what, const auto& ranks) {
    std::vector<std::ptrdiff_t> of;
    for (const int rank : ranks) of.push_back(std::find(to.begin(), to.end(), rank) - to.begin());
    std::sort(of.begin(), of.end());
    return of.empty() ? "" : absl::StrCat(what, " ", absl::StrJoin(of, " "));
  };
  std::vector<std::string> causes;
  for (const HangCause& cause : verdict.causes()) {
    causes.push_back(absl::StrCat(HangCause::Kind_Name(cause.kind()), list("", cause.ranks())));
  }
  std::sort(causes.begin(), causes.end());
  return absl::StrCat(HangVerdict::Answer_Name(verdict.answer()), causes.empty() ? "" : " ",
                      absl::StrJoin(causes, ", "), list("; suspects", verdict.suspects()),
                      list("; unknown", verdict.unknown()), list("; held up", verdict.held_up()));
}

TEST(Scenarios, AreJudgedTheSameWhicheverRankIsWhich) {
  for (const Scenario& scenario : ReadScenarios()) {
    std::vector<int> to = NumbersOf(scenario);
    const HangVerdict first = Diagnose(scenario, to);
    SCOPED_TRACE(absl::StrCat(absl::StrJoin(scenario.groups, " "), " |", absl::StrJoin(scenario.ranks, "|"),
                              ": ", first.verdict()));
    EXPECT_THAT(first.verdict(), HasSubstr(scenario.says));
    EXPECT_THAT(absl::StrJoin(first.notes(), "; "), HasSubstr(scenario.note));
    const std::string any_note =
        scenario.note.empty() ? "may be a consequence|others wait for|in a circle" : "";
    EXPECT_THAT(first.notes(), testing::Each(testing::ContainsRegex(any_note)));
    // The text of a cause is in the verdict, and says so if nobody is to blame.
    for (const HangCause& cause : first.causes()) {
      EXPECT_THAT(first.causes_size() > 1 ? cause.text() : first.verdict(), HasSubstr(cause.text()));
      EXPECT_FALSE(cause.operation().empty() && HangCause::Kind_Name(cause.kind()).find("DIFFERENT") == 0);
      EXPECT_EQ(cause.ranks().empty(),
                std::regex_search(cause.text(), std::regex("nobody|nothing|everybody|^$")));
    }
    do {
      const HangVerdict verdict = Diagnose(scenario, to);
      ASSERT_EQ(InWords(verdict, to), scenario.judged) << "as ranks " << absl::StrJoin(to, " ");
      for (const HangCause& cause : verdict.causes()) {
        for (const int rank : cause.ranks()) EXPECT_THAT(cause.waiting(), testing::Not(Contains(rank)));
      }
    } while (std::next_permutation(to.begin(), to.end()));
  }
}

TEST(Scenarios, BlameNoInnocentWhicheverRecorderIsMissing) {
  for (const Scenario& scenario : ReadScenarios()) {
    const std::vector<int> to = NumbersOf(scenario);
    const HangVerdict whole = Diagnose(scenario, to);
    // Who is ahead is excused by one that is behind, where that is known.
    if (absl::StrContains(scenario.note, "missed as well, but ahead")) continue;
    for (size_t missing = 0; missing < to.size() && whole.culprits_size() > 0; ++missing) {
      Scenario less = scenario;
      less.ranks[missing] = "unread";
      const HangVerdict verdict = Diagnose(less, to);
      for (const int culprit : verdict.culprits()) {
        EXPECT_THAT(whole.culprits(), Contains(culprit)) << scenario.judged << " without " << missing;
      }
    }
  }
}

}  // namespace
}  // namespace ott

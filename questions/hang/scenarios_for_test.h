// Jobs that hang or do not, in words, and how they are judged.

#ifndef OTT_QUESTIONS_HANG_SCENARIOS_FOR_TEST_H_
#define OTT_QUESTIONS_HANG_SCENARIOS_FOR_TEST_H_

namespace ott {

// First come groups: "a=0123.7" has ranks 0 to 3, of which each completed all up to #7. "untimed" and
// "no_entry" are of jobs that do not record times, or when operations begin. Then come the ranks: "sum:a#8"
// entered #8 of group a as "sum", and "a#3-8/101=64c!" completed #3 to #8 in iteration 101, of size 64,
// alone; q: only enqueued. "send>2" and "recv<2" stand; "@load" is the place, "i7" the iteration, "t990" the
// time of the last sign of life, "killed" says that SIGTERM ended it, "h1" is the host, and "cpu97" the share
// of a CPU that it takes.
inline constexpr char kScenarios[] = R"(
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
# The same holds beside one that was killed, unless that one lived on, or was ended by its launcher.
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
# A rank that left out a call is an iteration ahead from then on.
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
# Nobody waits for long.
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

}  // namespace ott

#endif  // OTT_QUESTIONS_HANG_SCENARIOS_FOR_TEST_H_

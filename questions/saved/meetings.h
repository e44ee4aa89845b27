// Finds which ranks wait for which others in collective measurements.

#ifndef OTT_QUESTIONS_SAVED_MEETINGS_H_
#define OTT_QUESTIONS_SAVED_MEETINGS_H_

#include <cstddef>
#include <cstdint>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "questions/saved/block_pieces.h"

namespace ott::saved {

// Ranks that come to a collective measurement of one name and position in the iteration meet there. They wait
// for each other as the configuration says, and never for whom they are seen to leave before: a rank that
// left before another one came did not wait for it. So groups that nobody declared are found, and a send that
// does not block holds up its receive and not the other way round.
class Meetings {
 public:
  explicit Meetings(size_t num_ranks) : num_ranks_(num_ranks) {}

  // Declares a group: ranks with different groups do not wait for each other in measurements of this name; 0:
  // not told.
  void Declare(int32_t name, size_t rank, int32_t group);

  // Returns 0 if it was not told.
  int32_t DeclaredGroup(int32_t name, size_t rank) const;

  // blocks: of each block, the pieces of each rank. error_bound: of their times, in nanoseconds.
  void Learn(const std::vector<std::vector<std::vector<Piece>>>& blocks, int64_t error_bound);

  // Returns the group; ranks of one group wait for each other.
  int32_t GroupOf(const Piece& piece, size_t rank) const;
  // Returns the ranks that the rank waits for besides its group.
  std::vector<size_t> WaitsFor(const Piece& piece, size_t rank) const;
  // Returns true if all ranks come to it, and wait for each other.
  bool IsOfAll(const Piece& piece) const;

  // Returns a number by rank: ranks of one number wait for each other, if only through others.
  std::vector<int> Components() const;

  // Returns how many groups were found of a name that was not declared, if not all ranks are one.
  const std::map<int32_t, int>& num_groups_found() const { return num_groups_found_; }

 private:
  using Kind = std::pair<int32_t, int32_t>;  // name, and how many of it the iteration had before
  struct Stay {
    size_t rank = 0;
    int64_t start = 0;
    int64_t end = 0;
  };
  struct Meeting {
    std::vector<char> comes;                // by rank
    std::vector<int32_t> group;             // by rank
    std::vector<std::vector<size_t>> for_;  // by rank: whom it waits for besides
  };

  void LearnMeeting(const Kind& kind, const std::map<int64_t, std::vector<Stay>>& occurrences,
                    int64_t error_bound);
  void Split(const std::map<int64_t, std::vector<Stay>>& occurrences, int64_t error_bound,
             Meeting& meeting) const;

  size_t num_ranks_;
  std::map<int32_t, std::vector<int32_t>> declared_;  // by name
  std::map<Kind, Meeting> meetings_;
  std::map<int32_t, int> num_groups_found_;
};

}  // namespace ott::saved

#endif  // OTT_QUESTIONS_SAVED_MEETINGS_H_

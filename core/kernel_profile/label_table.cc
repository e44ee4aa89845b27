#include "ott/core/kernel_profile/label_table.h"

namespace ott::kernels {

LabelTable::Pattern::Pattern(std::string_view text, const LabelParts& parts)
    : before_(parts.head), has_sequence_number_(parts.sequence_number != kNoSequenceNumber) {
  // A tail that is not of the text stands for nothing in it.
  const bool ends_in_tail =
      text.size() >= parts.tail.size() && text.substr(text.size() - parts.tail.size()) == parts.tail;
  if (ends_in_tail) after_ = parts.tail;
  has_numbers_ = text.size() > before_.size() + after_.size();
  // Its parts may be in another order.
  uint64_t sequence_number;
  is_usable_ = Matches(text, &sequence_number);
}

bool LabelTable::Pattern::Matches(std::string_view text, uint64_t* sequence_number) const {
  const size_t size = before_.size() + after_.size();
  if (!is_usable_ || text.size() < size || (text.size() > size) != has_numbers_ ||
      text.substr(0, before_.size()) != before_ || text.substr(text.size() - after_.size()) != after_) {
    return false;
  }
  *sequence_number = kNoSequenceNumber;
  return !has_numbers_ ||
         (ParseNumbers(text.substr(before_.size(), text.size() - size), before_[0] == '{', sequence_number) &&
          (*sequence_number != kNoSequenceNumber) == has_sequence_number_);
}

std::pair<uint32_t, uint64_t> LabelTable::Find(std::string_view text) {
  uint32_t& guess = guesses_[(31 * before_last_ + last_) % guesses_.size()];
  uint64_t sequence_number;
  if (guess >= patterns_.size() || !patterns_[guess].Matches(text, &sequence_number)) {
    const LabelParts parts = SplitLabel(text);
    sequence_number = parts.sequence_number;
    auto found = label_of_.find(std::make_pair(parts.head, parts.tail));
    if (found == label_of_.end()) {
      found = label_of_.emplace(std::make_pair(parts.head, parts.tail), labels_.size()).first;
      labels_.push_back(ParseLabel(parts));
      patterns_.emplace_back(text, parts);
    }
    guess = found->second;
  }
  before_last_ = std::exchange(last_, guess);
  return {guess, sequence_number};
}

}  // namespace ott::kernels

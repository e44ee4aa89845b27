#include "ott/core/chrome_trace/trace_splitter.h"

#include <algorithm>
#include <array>
#include <cstring>

namespace ott::chrome_trace {
namespace {

constexpr int kEndOfFile = -1;
constexpr size_t kWindow = size_t{1} << 19;  // which caches hold while it is written, split and parsed
// Limits one event or member. Lists of packages and the like are shorter.
constexpr size_t kMost = size_t{1} << 26;

constexpr std::array<bool, 256> TableOf(std::string_view characters) {
  std::array<bool, 256> table{};
  for (const char c : characters) table[static_cast<unsigned char>(c)] = true;
  return table;
}

constexpr std::array<bool, 256> kWhiteSpace = TableOf(" \t\r\n");
constexpr std::array<bool, 256> kStructure = TableOf("{}[]\"");
constexpr std::array<bool, 256> kEndOfScalar = TableOf(" \t\r\n,]}");

bool IsIn(const std::array<bool, 256>& table, char c) { return table[static_cast<unsigned char>(c)]; }

}  // namespace

TraceSplitter::TraceSplitter(ByteSource& source) : source_(source), window_(kWindow + kPadding) {}

bool TraceSplitter::Refill(size_t* keep) {
  if (at_end_of_file_) return false;
  std::memmove(window_.data(), window_.data() + *keep, end_ - *keep);
  base_ += static_cast<int64_t>(*keep);
  at_ -= *keep;
  end_ -= *keep;
  *keep = 0;
  if (end_ + kPadding == window_.size()) window_.resize(2 * end_ + kPadding);
  const size_t wanted = window_.size() - kPadding - end_;
  const size_t got = source_.Read(window_.data() + end_, wanted);
  end_ += got;
  at_end_of_file_ = got < wanted;
  return got > 0;
}

int TraceSplitter::Peek() {
  for (;;) {
    while (at_ < end_ && IsIn(kWhiteSpace, window_[at_])) ++at_;
    if (at_ < end_) return static_cast<unsigned char>(window_[at_]);
    size_t keep = at_;
    if (!Refill(&keep)) return kEndOfFile;
  }
}

bool TraceSplitter::FindEnd(size_t* end, bool* whole) {
  const bool is_scalar = !IsIn(kStructure, window_[at_]);
  size_t keep = at_;
  size_t p = at_;
  int64_t depth = 0;
  bool in_string = false;
  *whole = true;
  for (;;) {
    if (in_string) {
      while (p < end_ && window_[p] != '"' && window_[p] != '\\') ++p;
    } else if (is_scalar) {
      while (p < end_ && !IsIn(kEndOfScalar, window_[p])) ++p;
    } else {
      while (p < end_ && !IsIn(kStructure, window_[p])) ++p;
    }
    if (p >= end_) {
      if (p - keep > kMost) {
        *whole = false;
        keep = at_ = std::min(p, end_);
      }
      const size_t moved = keep;
      if (!Refill(&keep)) return false;
      p -= moved;
      continue;
    }
    const char c = window_[p];
    if (is_scalar) {
      *end = p;
      return true;
    }
    if (c == '\\') {
      p += 2;
      continue;
    }
    ++p;
    if (c == '"') {
      in_string = !in_string;
    } else {
      depth += c == '{' || c == '[' ? 1 : -1;
    }
    if (depth <= 0 && !in_string) {
      *end = p;
      return true;
    }
  }
}

bool TraceSplitter::NextBatch(Batch* batch) {
  if (state_ != State::kEvents) return false;
  while (at_ < end_ && (IsIn(kWhiteSpace, window_[at_]) || window_[at_] == ',')) ++at_;
  size_t keep = at_ - 1;  // the byte before, at least the list's bracket
  if (!at_end_of_file_) (void)Refill(&keep);
  if (at_ == end_ || window_[at_] != '{') return false;
  // The end of an event, a comma and the beginning of another one, from the back.
  for (size_t next = end_ - 1; next > at_; --next) {
    if (window_[next] != '{') continue;
    size_t comma = next - 1;
    while (comma > at_ && IsIn(kWhiteSpace, window_[comma])) --comma;
    if (window_[comma] != ',') continue;
    size_t last = comma - 1;
    while (last > at_ && IsIn(kWhiteSpace, window_[last])) --last;
    if (window_[last] != '}') continue;
    *batch = {window_.data() + at_, last + 1 - at_, base_ + static_cast<int64_t>(at_)};
    return true;
  }
  return false;
}

bool TraceSplitter::EndTruncated() {
  truncated_ = true;
  state_ = State::kEnd;
  return false;
}

bool TraceSplitter::Take(size_t end, bool whole, std::string_view member, Part* part) {
  const size_t begin = at_;
  at_ = end;
  if (!whole) {
    ++num_too_long_;
    return false;
  }
  part->member = member;
  part->text = std::string_view(window_.data() + begin, end - begin);
  part->offset = base_ + static_cast<int64_t>(begin);
  return true;
}

bool TraceSplitter::NextEvent(Part* part) {
  for (;;) {
    const int c = Peek();
    if (c == kEndOfFile) return EndTruncated();
    if (c == ']') {
      ++at_;
      state_ = is_list_ ? State::kEnd : State::kMembers;
      return false;
    }
    if (c != '{') {
      if (c != ',') ++num_stray_bytes_;
      ++at_;
      continue;
    }
    size_t end;
    bool whole;
    if (!FindEnd(&end, &whole)) return EndTruncated();
    if (Take(end, whole, {}, part)) return true;
  }
}

bool TraceSplitter::NextMember(Part* part) {
  for (;;) {
    int c = Peek();
    size_t end;
    bool whole;
    if (c == '}') {
      ++at_;
      state_ = State::kEnd;
      return false;
    }
    if (c == ',') {
      ++at_;
      continue;
    }
    if (c != kEndOfFile && c != '"') {
      ++num_stray_bytes_;
      ++at_;
      continue;
    }
    if (c == kEndOfFile || !FindEnd(&end, &whole)) return EndTruncated();
    member_ = whole ? std::string(window_.data() + at_ + 1, end - at_ - 2) : "";
    at_ = end;
    if (Peek() != ':') continue;
    ++at_;
    c = Peek();
    if (c == '[' && member_ == "traceEvents") {
      ++at_;
      state_ = State::kEvents;
      return false;
    }
    if (c == kEndOfFile) continue;
    if (!FindEnd(&end, &whole)) return EndTruncated();
    if (Take(end, whole, member_, part)) return true;
  }
}

bool TraceSplitter::Next(Part* part) {
  if (state_ == State::kStart) {
    constexpr std::string_view kByteOrderMark = "\xef\xbb\xbf";
    (void)Peek();
    if (std::string_view(window_.data() + at_, std::min(end_ - at_, kByteOrderMark.size())) == kByteOrderMark)
      at_ += kByteOrderMark.size();
    const int c = Peek();
    if (c != '{' && c != '[') return false;
    ++at_;
    is_list_ = c == '[';
    state_ = is_list_ ? State::kEvents : State::kMembers;
  }
  while (state_ != State::kEnd) {
    if (state_ == State::kEvents ? NextEvent(part) : NextMember(part)) return true;
  }
  return false;
}

}  // namespace ott::chrome_trace

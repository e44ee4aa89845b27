#include "tools/report/document_text.h"

#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "ott/dist/comm/launched_process.h"
#include "ott/questions/answer/display_text.h"

namespace ott::report {
namespace {

// An answer has so many lines at most before the details.
constexpr int kMaxLines = 4;

struct Look {
  const char* mark;
  const char* color;
};

constexpr char kReset[] = "\033[0m";
constexpr char kBold[] = "\033[1m";
constexpr char kDim[] = "\033[2m";

Look LookOf(Answer::Finding finding) {
  switch (finding) {
    case Answer::GOOD:
      return {"+", "\033[32m"};
    case Answer::BAD:
      return {"!", "\033[31m"};
    default:
      return {"?", "\033[33m"};
  }
}

std::string Paint(const TextStyle& style, const char* color, std::string_view text) {
  return style.color ? absl::StrCat(color, std::string(text), kReset) : std::string(text);
}

// At spaces where there are some.
std::vector<std::string> Break(std::string_view line, size_t width) {
  std::vector<std::string> lines;
  while (width > 0 && FirstBytes(line, width) < line.size()) {
    const size_t most = FirstBytes(line, width);
    const size_t space = line.substr(0, most + 1).rfind(' ');
    const bool is_word = space == std::string_view::npos || line.find_first_not_of(' ') >= space;
    const size_t end = is_word ? most : space;
    lines.emplace_back(line.substr(0, end));
    line.remove_prefix(is_word ? end : end + 1);
  }
  lines.emplace_back(line);
  return lines;
}

void AppendIndented(std::string_view line, size_t indent, const char* color, const TextStyle& style,
                    std::string* text) {
  const size_t width = style.width > indent + 10 ? style.width - indent : style.width > 0 ? 10 : 0;
  for (const std::string& part : Break(line, width)) {
    absl::StrAppend(text, std::string(indent, ' '), color == nullptr ? part : Paint(style, color, part),
                    "\n");
  }
}

void AppendNext(const Answer& answer, size_t indent, const TextStyle& style, std::string* text) {
  for (const std::string& line : answer.next())
    AppendIndented(absl::StrCat("next: ", line), indent, nullptr, style, text);
}

// in_full: also how sure it is, and what to run next.
void AppendAnswer(const Answer& answer, const TextStyle& style, bool in_full, std::string* text) {
  const Look look = LookOf(answer.finding());
  absl::StrAppend(text, Paint(style, look.color, look.mark), " ", Paint(style, kBold, answer.title()), "\n");
  const int num_lines = answer.sentences_size();
  const bool is_long = num_lines > kMaxLines;
  for (int i = 0; i < (is_long ? kMaxLines - 1 : num_lines); ++i)
    AppendIndented(answer.sentences(i), 2, nullptr, style, text);
  if (is_long)
    AppendIndented(absl::StrCat("and ", num_lines - kMaxLines + 1, " more lines, below"), 2, nullptr, style,
                   text);
  if (!in_full) return;
  if (!answer.how_sure().empty())
    AppendIndented(absl::StrCat("how sure: ", answer.how_sure()), 4, kDim, style, text);
  AppendNext(answer, 4, style, text);
}

// A table's lines.
void AppendCut(const std::string& lines, const TextStyle& style, std::string* text) {
  for (const std::string& line : std::vector<std::string>(absl::StrSplit(lines, '\n'))) {
    const bool is_cut = style.width > 1 && FirstBytes(line, style.width) < line.size();
    absl::StrAppend(text, is_cut ? line.substr(0, FirstBytes(line, style.width - 1)) : line,
                    is_cut ? "\u2026\n" : "\n");
  }
}

std::string Summarize(const Document& document, const TextStyle& style, bool in_full) {
  std::string text;
  AppendIndented(absl::StrCat(document.title, ": ", document.subject), 0, nullptr, style, &text);
  text += "\n";
  for (const Answer& answer : document.answers) AppendAnswer(answer, style, in_full, &text);
  for (const std::string& problem : document.problems) {
    AppendIndented(absl::StrCat("INCOMPLETE: ", problem), 0, LookOf(Answer::CANNOT_TELL).color, style, &text);
  }
  return text;
}

// A line is the prompt's.
bool Fits(const std::string& text, const TextStyle& style) {
  return style.height == 0 || static_cast<size_t>(std::count(text.begin(), text.end(), '\n')) < style.height;
}

}  // namespace

std::string ToSummary(const Document& document, const TextStyle& style) {
  std::string text = Summarize(document, style, /*in_full=*/true);
  return Fits(text, style) ? text : Summarize(document, style, /*in_full=*/false);
}

std::string ToText(const Document& document, const TextStyle& style) {
  std::string text = Summarize(document, style, /*in_full=*/true);
  if (!Fits(text, style)) {
    text = Summarize(document, style, /*in_full=*/false);
    absl::StrAppend(&text, "\n", Paint(style, kBold, "How sure that is"), "\n");
    for (const Answer& answer : document.answers) {
      if (!answer.how_sure().empty())
        AppendIndented(absl::StrCat(answer.title(), " ", answer.how_sure()), 0, nullptr, style, &text);
      AppendNext(answer, 0, style, &text);
    }
  }
  for (const Answer& answer : document.answers) {
    if (answer.sentences_size() <= kMaxLines) continue;
    absl::StrAppend(&text, "\n", Paint(style, kBold, answer.title()), "\n");
    AppendCut(TextOf(answer), style, &text);
  }
  for (const Details& details : document.details) {
    absl::StrAppend(&text, "\n", Paint(style, kBold, details.title), "\n");
    AppendCut(details.text.substr(0, details.text.size() - 1), style, &text);
  }
  return text;
}

TextStyle StyleOfStandardOutput(const std::string& color) {
  TextStyle style;
  // mpirun gives its processes terminals that nobody looks at.
  const bool is_terminal = isatty(STDOUT_FILENO) != 0 && !LaunchedProcessFromEnvironment();
  const char* const no_color = std::getenv("NO_COLOR");
  const char* const terminal = std::getenv("TERM");
  const bool is_plain = (no_color != nullptr && *no_color != '\0') ||
                        (terminal != nullptr && std::string_view(terminal) == "dumb");
  style.color = color == "always" || (color == "auto" && is_terminal && !is_plain);
  winsize size = {};
  if (is_terminal && ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) == 0) {
    style.width = size.ws_col;
    style.height = size.ws_row;
  }
  return style;
}

}  // namespace ott::report

#include "tools/report/report_html.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_replace.h"
#include "ott/core/base/text_table.h"
#include "ott/dist/check/verdict.h"
#include "ott/dist/stats/cluster_table.h"
#include "tools/report/report_text.h"

namespace ott::report {
namespace {

// Further differences are listed up to here; the counts say how many there are.
constexpr size_t kMaxListed = 5;
// Pictures of the checks have so many columns at most; each stands for the worst of its checks.
constexpr size_t kMaxColumns = 200;

constexpr char kStyle[] = R"(
body { font: 15px/1.5 system-ui, sans-serif; max-width: 70rem; margin: 2rem auto; padding: 0 1rem; color: #1b1f24; }
h1 { font-size: 1.4rem; margin-bottom: 0; } h2 { font-size: 1.1rem; margin-top: 2rem; }
.answer { border-left: 6px solid; padding: .3rem 1rem; margin: 1rem 0; background: #f6f8fa; }
.answer b { display: block; } .answer pre { margin: .2rem 0; white-space: pre-wrap; }
.good { border-color: #1a7f37; } .bad { border-color: #cf222e; } .unknown { border-color: #9a6700; }
pre { overflow-x: auto; font: 13px/1.45 ui-monospace, monospace; white-space: pre; }
svg { width: 100%; } svg text { font: 12px system-ui, sans-serif; fill: #1b1f24; }
)";

std::string EscapeHtml(const std::string& text) {
  return absl::StrReplaceAll(text, {{"&", "&amp;"}, {"<", "&lt;"}, {">", "&gt;"}, {"\"", "&quot;"}});
}

const char* NameOf(Grade grade) {
  switch (grade) {
    case Grade::kGood:
      return "good";
    case Grade::kBad:
      return "bad";
    case Grade::kUnknown:
      break;
  }
  return "unknown";
}

struct OutcomeLook {
  int severity;
  const char* color;
  const char* name;
};

OutcomeLook LookOf(Outcome outcome) {
  switch (outcome) {
    case BITWISE_EQUAL:
      return {0, "#1a7f37", "equal bit for bit"};
    case WITHIN_TOLERANCE:
      return {1, "#8bc34a", "within tolerance"};
    case DIFFERENT:
      return {3, "#cf222e", "DIFFER"};
    default:
      return {2, "#d4a72c", "NOT COMPARED"};
  }
}

// The verdicts that are no pass, the first of which is in the answers.
std::string ListFailures(const CheckHistory& checks) {
  std::string text;
  size_t listed = 0;
  for (const CrossCheckVerdict& verdict : checks.verdicts) {
    if (LookOf(OutcomeOfAllRanks(verdict)).severity < 2) continue;
    if (++listed > kMaxListed) continue;
    text += FormatVerdict(verdict);
  }
  if (listed > kMaxListed) absl::StrAppend(&text, "... and ", listed - kMaxListed, " more\n");
  return text;
}

// A bar of one cell a check, or of the worst of several where there are many.
std::string DrawChecks(const CheckHistory& checks) {
  const size_t num_checks = checks.verdicts.size();
  const size_t num_columns = std::min(num_checks, kMaxColumns);
  constexpr int kWidth = 1000;
  std::string svg = absl::StrFormat("<svg viewBox=\"0 0 %d 46\" role=\"img\">\n", kWidth);
  for (size_t column = 0; column < num_columns; ++column) {
    const size_t begin = column * num_checks / num_columns;
    const size_t end = (column + 1) * num_checks / num_columns;
    OutcomeLook worst = LookOf(BITWISE_EQUAL);
    for (size_t i = begin; i < end; ++i) {
      const OutcomeLook look = LookOf(OutcomeOfAllRanks(checks.verdicts[i]));
      if (look.severity > worst.severity) worst = look;
    }
    const int64_t first = checks.verdicts[begin].iteration();
    const int64_t last = checks.verdicts[end - 1].iteration();
    const double width = static_cast<double>(kWidth) / num_columns;
    absl::StrAppendFormat(&svg,
                          "<rect x=\"%.2f\" y=\"0\" width=\"%.2f\" height=\"26\" fill=\"%s\" stroke=\"#fff\" "
                          "stroke-width=\"%s\"><title>iteration %s: %s</title></rect>\n",
                          column * width, width, worst.color, num_columns > 100 ? "0" : "1",
                          first == last ? absl::StrCat(first) : absl::StrCat(first, " to ", last),
                          worst.name);
  }
  absl::StrAppendFormat(&svg,
                        "<text x=\"0\" y=\"42\">iteration %d</text><text x=\"%d\" y=\"42\" "
                        "text-anchor=\"end\">iteration %d</text></svg>\n",
                        checks.verdicts.front().iteration(), kWidth, checks.verdicts.back().iteration());
  return svg;
}

// A bar a rank: its own work in an iteration.
std::string DrawWork(const ClusterStats& stats) {
  double longest = 0;
  for (const RankSummary& rank : stats.ranks()) longest = std::max(longest, rank.work_seconds());
  if (longest <= 0) return "";
  constexpr int kRowHeight = 20;
  std::string svg =
      absl::StrFormat("<svg viewBox=\"0 0 1000 %d\" role=\"img\">\n", stats.ranks_size() * kRowHeight);
  int y = 0;
  for (const RankSummary& rank : stats.ranks()) {
    const bool slow = stats.has_straggler() && stats.straggler().rank() == rank.rank();
    absl::StrAppendFormat(&svg,
                          "<text x=\"0\" y=\"%d\">rank %d (%s)</text><rect x=\"200\" y=\"%d\" width=\"%.1f\" "
                          "height=\"14\" fill=\"%s\"/><text x=\"%.1f\" y=\"%d\">%s</text>\n",
                          y + 14, rank.rank(), EscapeHtml(EscapeControlCharacters(rank.host())), y + 2,
                          rank.work_seconds() / longest * 680, slow ? "#cf222e" : "#57606a",
                          206 + rank.work_seconds() / longest * 680, y + 14,
                          FormatSeconds(rank.work_seconds()));
    y += kRowHeight;
  }
  return svg + "</svg>\n";
}

void AppendChecks(const std::string& title, const CheckHistory& checks, std::string* html) {
  if (checks.verdicts.empty()) return;
  absl::StrAppend(html, "<h2>", title, "</h2>\n", DrawChecks(checks));
  if (const std::string failures = ListFailures(checks); !failures.empty()) {
    absl::StrAppend(html, "<pre>", EscapeHtml(failures), "</pre>\n");
  }
}

std::string BeginPage(const std::string& title) {
  const std::string name = EscapeHtml(EscapeControlCharacters(title));
  return absl::StrCat("<!DOCTYPE html>\n<html lang=\"en\"><head><meta charset=\"utf-8\">\n<title>", name,
                      "</title>\n<style>", kStyle, "</style></head><body>\n<h1>", name, "</h1>\n");
}

void AppendAnswers(const std::vector<Answer>& answers, std::string* html) {
  for (const Answer& answer : answers) {
    absl::StrAppend(html, "<div class=\"answer ", NameOf(answer.grade), "\"><b>", answer.question,
                    "</b><pre>", EscapeHtml(answer.text), "</pre></div>\n");
  }
}

}  // namespace

std::string ToHtmlPage(const std::string& title, const std::vector<Answer>& answers,
                       const std::vector<HtmlSection>& sections) {
  std::string html = BeginPage(title);
  AppendAnswers(answers, &html);
  for (const HtmlSection& section : sections) {
    absl::StrAppend(&html, "<h2>", EscapeHtml(section.title), "</h2>\n", section.picture, "<pre>",
                    EscapeHtml(section.text), "</pre>\n");
  }
  return html + "</body></html>\n";
}

std::string ToHtml(const RunReport& report) {
  std::string html = absl::StrCat(BeginPage(report.run_dir), EscapeHtml(DescribeRun(report)), "\n");
  AppendAnswers(Answers(report), &html);
  for (const std::string& problem : report.problems) {
    absl::StrAppend(&html, "<div class=\"answer unknown\"><b>Incomplete</b><pre>", EscapeHtml(problem),
                    "</pre></div>\n");
  }
  AppendChecks("Replicas, check by check", report.replicas, &html);
  AppendChecks("Against the reference, check by check", report.reference, &html);
  if (report.stats) {
    if (const std::string work = DrawWork(*report.stats); !work.empty()) {
      absl::StrAppend(&html, "<h2>Work of each rank in an iteration, without waiting for others</h2>\n",
                      work);
    }
    absl::StrAppend(&html, "<h2>Where the time went</h2>\n<pre>",
                    EscapeHtml(FormatClusterTable(*report.stats)), "</pre>\n");
  }
  return html + "</body></html>\n";
}

}  // namespace ott::report

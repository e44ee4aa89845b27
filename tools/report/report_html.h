// A run's report as a page for the browser.

#ifndef OTT_TOOLS_REPORT_REPORT_HTML_H_
#define OTT_TOOLS_REPORT_REPORT_HTML_H_

#include <string>
#include <vector>

#include "tools/report/report_text.h"
#include "tools/report/run_report.h"

namespace ott::report {

// One file that needs no other, no network and no script: the answers, the checks over iterations and the
// work of the ranks as pictures, and the tables. Its size does not grow with the run's length.
std::string ToHtml(const RunReport& report);

// A heading with a picture (SVG, or nothing) and a text below it.
struct HtmlSection {
  std::string title;
  std::string picture;
  std::string text;
};

// Such a page of other answers.
std::string ToHtmlPage(const std::string& title, const std::vector<Answer>& answers,
                       const std::vector<HtmlSection>& sections);

}  // namespace ott::report

#endif  // OTT_TOOLS_REPORT_REPORT_HTML_H_

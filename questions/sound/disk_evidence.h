// Reads what tells of broken rules besides the records of a run's ranks: cross-checks that were made as it
// went on, and dumps, which programs in C++ leave, too.

#ifndef OTT_QUESTIONS_SOUND_DISK_EVIDENCE_H_
#define OTT_QUESTIONS_SOUND_DISK_EVIDENCE_H_

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "ott/dist/directory/run_info.pb.h"
#include "ott/questions/sound/sound.pb.h"

namespace ott::sound {

// All that is known of each rank, with ReadSoundRecords(). info: nullopt if run.json cannot be read.
// problems: gets a line for each file that cannot be read.
std::map<int, SoundRecord> ReadEvidence(const std::string& run_dir, const std::vector<int>& ranks,
                                        const std::optional<RunInfo>& info,
                                        std::vector<std::string>* problems);

// Adds what the dumps of a rank say: whether gradients are finite, and whether parameters with a gradient
// change from an iteration to the next. Dumps that cannot be read are not checked.
void AddDumpedSteps(const std::string& run_dir, int rank, const CrossCheckConfig& kinds, SoundRecord* record);

}  // namespace ott::sound

#endif  // OTT_QUESTIONS_SOUND_DISK_EVIDENCE_H_

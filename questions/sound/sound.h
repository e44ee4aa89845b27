// Judges what the ranks of a run saw of the rules that a training step keeps: joins their findings, and
// compares what ranks of a group must have in common.

#ifndef OTT_QUESTIONS_SOUND_SOUND_H_
#define OTT_QUESTIONS_SOUND_SOUND_H_

#include <map>
#include <string>
#include <vector>

#include "ott/core/base/config.pb.h"
#include "ott/questions/sound/sound.pb.h"

namespace ott::sound {

// Reads RUN/rank_*/sound.json. problems: gets a line for each that cannot be read.
std::map<int, SoundRecord> ReadSoundRecords(const std::string& run_dir, const std::vector<int>& ranks,
                                            std::vector<std::string>* problems);

// records: by rank. num_ranks: of the job. A rank without a record makes a verdict without findings one that
// cannot be told.
SoundVerdict JudgeSound(const std::map<int, SoundRecord>& records, int num_ranks, const SoundConfig& config);

// Judges what the ranks of a run recorded, by its run.json.
SoundVerdict JudgeSoundOf(const std::string& run_dir, std::vector<std::string>* problems);

}  // namespace ott::sound

#endif  // OTT_QUESTIONS_SOUND_SOUND_H_

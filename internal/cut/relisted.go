package cut

import (
	"strconv"
	"strings"
)

// Relisted returns the metadata of a committed offset for a copy of its topic: with the ID of the copy, and with its number of
// partitions if partitions is not 0. The leader epoch and the attempts belong to the old log and are left out, as is metadata of
// other programs, such as the offsets that a worker has finished: they would be those of other records.
func Relisted(metadata, topicID string, partitions int) string {
	fields := strings.Fields(metadata)
	if len(fields) == 0 || fields[0] != listingFormat {
		return ""
	}
	kept := fields[:1]
	for _, f := range fields[1:] {
		switch name, _, _ := strings.Cut(f, "="); {
		case name == epochField || name == attemptsField:
		case name == topicField:
			kept = append(kept, topicField+"="+topicID)
		case name == countField && partitions > 0:
			kept = append(kept, countField+"="+strconv.Itoa(partitions))
		default:
			kept = append(kept, f)
		}
	}
	return strings.Join(kept, " ")
}

// Moving is the metadata of the offset that processors/archive commits, for as long as it writes the topics of a group. An
// instance of the group does not start meanwhile.
const Moving = "turntable/archive"

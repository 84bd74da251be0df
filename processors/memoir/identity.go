package memoir

import (
	"encoding/binary"
	"encoding/hex"
	"math"
	"strconv"
	"strings"

	"github.com/turntable-streams/turntable/internal/digests"
)

// The domains of digests: equal texts in different domains have different digests.
const (
	ofEnd     = "memoir end"
	ofRecord  = "memoir record"
	ofForeign = "memoir foreign end"
	ofGivenUp = "memoir given up"
	ofVersion = "memoir version"
)

// maxEnd bounds the ID of a session's end. Longer ones are replaced by their digest.
const maxEnd = 64

// passID is the turntable.id of a snapshot that is sent to a worker.
func passID(end string, pass uint32) string {
	return end + "/snapshot/" + strconv.FormatUint(uint64(pass), 10)
}

// passOf reads the end and the pass from the turntable.id of a snapshot, or of a record that a worker wrote because of it.
func passOf(id string) (end string, pass uint32, ok bool) {
	end, rest, ok := strings.Cut(id, "/snapshot/")
	if !ok || end == "" || len(end) > maxEnd {
		return "", 0, false
	}
	number, _, _ := strings.Cut(rest, "/")
	n, err := strconv.ParseUint(number, 10, 31)
	return end, uint32(n), err == nil
}

// endOf returns the ID of a session's end from the cause of its record.
func endOf(cause string) string {
	if end, _, ok := passOf(cause); ok {
		return end
	}
	d := digests.Of(ofEnd, cause)
	return hex.EncodeToString(d[:])
}

// versionAfter returns the version of a memory that a record has changed. It depends on the version before it, so two memories
// of one version have the same history.
func versionAfter(version uint64, cause string) uint64 {
	d := digests.Of(ofVersion, strconv.FormatUint(version, 10), cause)
	return max(1, binary.BigEndian.Uint64(d[:])&math.MaxInt64)
}

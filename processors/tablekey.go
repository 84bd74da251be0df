package processors

import (
	"strings"

	"github.com/turntable-streams/turntable/internal/runtimeapi"
)

// TableKey divides the key of a record of a table's topic. A large row has parts, which are records of their own
// (Context.SetPart): for one of them it returns the key of its row, the part's number and true. Any other record is the row
// of row, and isPart is false.
func TableKey(key string) (row string, part uint32, isPart bool) {
	row, _, found := strings.Cut(key, "\x00")
	if !found {
		return key, 0, false
	}
	if part, isPart = runtimeapi.PartNumber(row, key); !isPart {
		return key, 0, false
	}
	return row, part, true
}

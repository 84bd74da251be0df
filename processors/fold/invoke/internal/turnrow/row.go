// Package turnrow is the row format of the table of turns.
package turnrow

import (
	"github.com/turntable-streams/turntable/internal/rows"
)

// Version is the version of the row format that this build writes. Raise it only if an older build could not work correctly
// with a newer row. A new field is no reason: older builds preserve unknown fields.
const Version = 1

// Table is the format of the table of turns.
var Table = rows.Table[*Row]{Name: "invoke", Version: Version}

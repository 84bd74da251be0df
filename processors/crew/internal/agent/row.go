package agent

import (
	"github.com/turntable-streams/turntable/internal/rows"
)

// rowVersion is the version of the rows that this build writes. Raise it only if an older build could not keep a promise
// with a newer row. An additional field is no reason: unknown fields survive a rewrite.
const rowVersion = 1

// Table is the format of the row of an agent. Rows hold texts of agents and people.
var Table = rows.Table[*State]{Name: "crew agent", Version: rowVersion}

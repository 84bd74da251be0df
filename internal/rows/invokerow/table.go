// Package invokerow has the rows of the table of turns of package invoke.
package invokerow

import "github.com/turntable-streams/turntable/internal/rows"

// Version is that of the newest rows, see rows.Table.
const Version = 1

// Table is the format of the table of turns.
var Table = rows.Table[*Row]{Name: "invoke", Version: Version}

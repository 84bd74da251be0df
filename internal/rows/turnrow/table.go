// Package turnrow has the rows of package turn.
package turnrow

import "github.com/turntable-streams/turntable/internal/rows"

// Version is that of the newest rows, see rows.Table.
const Version = 12

// Table is the format of the row of a session.
var Table = rows.Table[*State]{Name: "turn", Version: Version}

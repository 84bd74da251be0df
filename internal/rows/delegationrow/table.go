// Package delegationrow has the rows of package delegation.
package delegationrow

import "github.com/turntable-streams/turntable/internal/rows"

// Version is that of the newest rows, see rows.Table.
const Version = 1

// Table is the format of the row of a session.
var Table = rows.Table[*State]{Name: "channel", Version: Version}

// Package memoirrow has the rows of package memoir.
package memoirrow

import "github.com/turntable-streams/turntable/internal/rows"

// Version is that of the newest rows, see rows.Table.
const Version = 1

// Table is the format of the row with the memories of a user.
var Table = rows.Table[*State]{Name: "memoir", Version: Version}

// Package foldrow has the rows of package fold.
package foldrow

import "github.com/turntable-streams/turntable/internal/rows"

// Version is that of the newest rows, see rows.Table.
const Version = 3

// Table is the format of the row of a session.
var Table = rows.Table[*Row]{Name: "fold", Version: Version}

// Package costrow has the rows of package cost.
package costrow

import "github.com/turntable-streams/turntable/internal/rows"

// Version is that of the newest rows, see rows.Table.
const Version = 1

// SessionTable is the format of the row with the costs of a session.
var SessionTable = rows.Table[*SessionTotals]{Name: "cost", Version: Version}

// ScopeTable is the format of the row with the spending of a scope.
var ScopeTable = rows.Table[*ScopeTotals]{Name: "cost", Version: Version}

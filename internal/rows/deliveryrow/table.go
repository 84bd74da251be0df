// Package deliveryrow has the rows of package delivery.
package deliveryrow

import "github.com/turntable-streams/turntable/internal/rows"

// Version is that of the newest rows, see rows.Table.
const Version = 2

// Table is the format of the row of a session.
var Table = rows.Table[*State]{Name: "delivery", Version: Version}

// CircuitTable is the format of the row with the circuit of a route.
var CircuitTable = rows.Table[*Circuit]{Name: "delivery", Version: Version}

package turn

import (
	"errors"
	"time"

	"github.com/turntable-streams/turntable/internal/rows/turnrow"
	"github.com/turntable-streams/turntable/topics"
)

// Imported is what another application knows of a session without an open turn.
type Imported struct {
	// History is the conversation: a JSON array of messages, nil for none. It must be valid JSON, as codecs return it.
	History topics.Raw
	// Cost is the session's cost in dollars, nil if unknown.
	Cost *float64
	User *string
}

// Importer makes rows of the group table from sessions of another application. Write them to the table only before the
// group starts for the first time. It is safe for concurrent use.
type Importer struct{ rules rules }

// NewImporter returns an importer for the group that Graph returns with the same Config. An error wraps ErrConfig.
func NewImporter(c Config) (*Importer, error) {
	if err := c.complete(); err != nil {
		return nil, err
	}
	return &Importer{rules{Config: c}}, nil
}

// Row returns the encoded row of a session and its parts, which must be written before it. at is when the session was last
// active. Equal arguments give equal bytes. Of a history that is longer than a row may be, the oldest exchanges are dropped,
// and all of them if the newest does not fit. The row is nil if nothing is known of the session.
func (i *Importer) Row(in Imported, at time.Time) (row []byte, parts []RowPart, err error) {
	at = time.UnixMilli(max(at.UnixMilli(), time.Second.Milliseconds())) // a record may lack a timestamp; part numbers begin at 1
	s := &session{row: &turnrow.State{Version: rowVersion}, now: at, rules: i.rules}
	layout := rowLayout{parts: noParts{}, limit: i.rules.RowLimit}
	s.row.Cost, s.row.UserId, s.row.TouchedMs = in.Cost, in.User, at.UnixMilli()
	keep := room{bytes: i.rules.RowLimit - rowReserve - layout.reserve() - stateSize(s.row)}
	history := topics.Splice(in.History)
	if len(history) > keep.bytes {
		history = withoutFront(history, cutFront(history, keep, true).bytes)
	}
	if n := messages(history); n > 0 {
		s.row.History, s.row.HistoryLength = history, n
	}
	if s.onlyMemoriesLeft() {
		return nil, nil, nil
	}
	s.row.DeadlineMs, s.row.Version = s.deadline(), formatOf(s.row)
	parts, _, _ = layout.divide(s.row, s.nowMS())
	row, err = turnrow.Table.Marshal(s.row)
	return row, parts, err
}

// noParts is the table of a session that has no row.
type noParts struct{}

func (noParts) Part(uint32) ([]byte, error) {
	return nil, errors.New("turn: an imported session has no parts yet")
}

package migrate

import (
	"strings"

	"github.com/turntable-streams/turntable/processors/turn"
	"github.com/turntable-streams/turntable/topics"
)

// histories makes the sessions' histories from their records, which are given in any order.
type histories struct {
	index *index
	open  map[string]*pieces // sessions of which some records are missing
}

// pieces are the records of a session, nil for those that are missing.
type pieces struct {
	records []*topics.ThinkResponse
	missing int
}

func newHistories(x *index) *histories { return &histories{index: x, open: map[string]*pieces{}} }

// wants reports whether a record is part of a history.
func (h *histories) wants(key string, p place) bool {
	_, _, ok := h.index.needs(key, p)
	return ok
}

// add takes a record of a history. done reports that it was the last: records are then those of the session, in order.
func (h *histories) add(key string, p place, r topics.ThinkResponse) (records []*topics.ThinkResponse, done bool) {
	i, n, ok := h.index.needs(key, p)
	switch {
	case !ok:
		return nil, false
	case n == 1:
		return []*topics.ThinkResponse{&r}, true
	}
	all := h.open[key]
	if all == nil {
		all = &pieces{make([]*topics.ThinkResponse, n), n}
		h.open[key] = all
	}
	if all.records[i] == nil {
		all.missing--
	}
	all.records[i] = &r
	if all.missing > 0 {
		return nil, false
	}
	delete(h.open, key)
	return all.records, true
}

// imported returns a session as its records and its entry in the index describe it.
func imported(s session, records []*topics.ThinkResponse) turn.Imported {
	in := turn.Imported{Cost: s.knownCost()}
	parts := make([]topics.Raw, len(records))
	for i, r := range records {
		parts[i] = exchange(*r)
		if r.UserID != nil && strings.TrimSpace(*r.UserID) != "" {
			in.User = r.UserID
		}
	}
	if len(parts) > 0 {
		in.History = topics.Splice(parts...)
	}
	return in
}

// latest returns the record that says all about a session by itself, as FlightDeck's store has it.
func latest(key string, s session, records []*topics.ThinkResponse) topics.ThinkResponse {
	r := *records[len(records)-1]
	r.SessionID, r.TotalSessionCost = &key, s.knownCost()
	if appends(r) {
		before := imported(s, records[:len(records)-1])
		r.PreviousMessages = topics.Splice(before.History)
		if r.UserID == nil {
			r.UserID = before.User
		}
	}
	return r
}

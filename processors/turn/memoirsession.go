package turn

import (
	"encoding/hex"
	"time"

	"github.com/turntable-streams/turntable/internal/digests"
	"github.com/turntable-streams/turntable/internal/truncate"
	"github.com/turntable-streams/turntable/topics"
)

// With Config.Memoir everything that a session forgets goes to the memory of its user first: at its end the whole conversation, with
// what the history limit, a compactor or a worker's compaction has hidden, and before that the hidden exchanges for which the row
// has no more room. A conversation that is too long for one record, or for one question to a model, becomes several snapshots.

// snapshotBytes is the longest conversation in a snapshot, in bytes. It fits into one question of package memoir/updater, and twice
// into a record, because FlightDeck's updater reads the conversation in another field than the others.
const snapshotBytes = 128 << 10

// remember writes the snapshots of a conversation that the session is about to forget. at is the time of that, in milliseconds
// since the epoch.
func (s *transition) remember(conversation topics.Raw, at int64) {
	key, user := s.memory(conversation)
	named := user
	if user != nil && *user != key {
		// FlightDeck's updater writes the memory under this ID if there is one, else under the key of the record.
		named = nil
	}
	if s.err != nil {
		return
	}
	room := s.rules.limit(s.rules.accepted.memoir) - envelope - 4*s.keySize() - 4*quoted(user) - s.rules.memoryRoom(nil, s.rules.BothSpellings)
	for _, part := range portions(conversation, min(snapshotBytes, room/2)) {
		snapshot := s.memoirSession(part, room, at, user)
		snapshot.UserID = named
		// The last number is that of the attempt to update the memory: the group counts on.
		s.effects = append(s.effects, emit{Key: key, ID: s.endID(part) + "/" + snapshot.kind() + "/1", Value: snapshot})
	}
}

// endID returns the ID of the end of a conversation. No turn has it, so no worker takes it for a turn that has ended.
func (s *session) endID(conversation topics.Raw) string {
	d := digests.Of(ofEnd, s.key, s.row.LastTurn, string(conversation))
	return hex.EncodeToString(d[:])
}

// memoirSession returns a snapshot. room is how many bytes its conversation may have in both fields.
func (s *session) memoirSession(conversation topics.Raw, room int, at int64, user *string) memoirSession {
	text := topics.Timestamp(time.UnixMilli(at))
	timestamp := &text
	if conversation == nil {
		conversation = topics.Raw("[]")
	}
	previous := shortened(conversation, room)
	return memoirSession{
		SessionID: &s.key, UserID: user, Timestamp: timestamp, Messages: shortened(conversation, room-len(previous)),
		ThinkResponse: &topics.ThinkResponse{
			SessionID: &s.key, UserID: user, TotalSessionCost: s.row.Cost, PreviousSessionCost: s.row.PreviousCost,
			ThinkCost: s.row.ThinkCost, PreviousMessages: previous, EndTurn: true, Timestamp: timestamp,
		},
	}
}

// portions divides a conversation into arrays of at most limit bytes, if possible where an exchange begins. A message that alone
// is longer is an array of its own.
func portions(conversation topics.Raw, limit int) (list []topics.Raw) {
	spans := elementsOf(conversation)
	if len(conversation) <= limit || len(spans) == 0 {
		return []topics.Raw{conversation}
	}
	for first, end := 0, 0; first < len(spans); first = end {
		for end = first + 1; end < len(spans) && spans[end].to-spans[first].from+len("[]") <= limit; end++ {
		}
		for at := end; end < len(spans) && at > first; at-- {
			m, err := topics.DecodeMessage(conversation[spans[at].from:spans[at].to])
			if err == nil && startsExchange(m) {
				end = at
				break
			}
		}
		list = append(list, topics.Splice(conversation[spans[first].from:spans[end-1].to]))
	}
	return list
}

// shortened returns a conversation that has at most limit bytes. Of a longer one, which is a single message, it returns the
// message with the beginning of its text; an ellipsis marks the end.
func shortened(conversation topics.Raw, limit int) topics.Raw {
	if len(conversation) <= limit {
		return conversation
	}
	for m, err := range topics.Messages(conversation) {
		if err != nil {
			break
		}
		text := topics.Text(m.Content)
		if blank(&text) {
			text = string(m.Content)
		}
		m.Metadata = nil
		for size := limit; size > 0; size /= 2 { // JSON can escape characters of the text
			part := truncate.Marked(text, size)
			m.Content = appendText(nil, &part)
			if short := topics.Splice(topics.EncodeMessage(m)); len(short) <= limit {
				return short
			}
		}
	}
	return topics.Raw("[]")
}

// rememberHidden writes the snapshots of the hidden exchanges, and forgets them.
func (s *transition) rememberHidden() {
	hidden := s.hiddenConversation()
	if s.err != nil {
		return
	}
	s.remember(hidden, s.nowMS())
	s.row.Hidden, s.row.HiddenParts = nil, nil
}

// hiddenConversation returns the hidden exchanges as an array, nil if there are none.
func (s *transition) hiddenConversation() topics.Raw {
	s.load(hidden)
	if len(s.row.Hidden) == 0 {
		return nil
	}
	return topics.Splice(s.row.Hidden[:len(s.row.Hidden)-len(",")])
}

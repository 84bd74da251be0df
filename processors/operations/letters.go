package operations

import (
	"bytes"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/lovoo/goka"

	"github.com/turntable-streams/turntable/processors"
	"github.com/turntable-streams/turntable/topics"
)

// Letter is a record of a group's dead-letter topic, without its value. It encodes to JSON.
type Letter struct {
	// ID is {topic}/{partition}/{offset} of the dead letter.
	ID    string `json:"id"`
	Group string `json:"group"`
	At    string `json:"at"`
	// Key is the key of the record. Source is where the record was first written.
	Key    string `json:"key"`
	Source Place  `json:"source"`
	Reason string `json:"reason"`
	Bytes  int    `json:"bytes"`
	// Truncated says that the value is not whole, so that the record cannot be written back.
	Truncated bool `json:"truncated"`
	// RequeuedAt is when it was written back, empty if it was not. Marks.Judge sets it and FailedAgain.
	RequeuedAt string `json:"requeued_at,omitempty"`
	// FailedAgain says that the record of the letter is one that was written back before.
	FailedAgain bool `json:"failed_again"`
	// Partition and Offset are the place of the letter in its topic.
	Partition int32 `json:"-"`
	Offset    int64 `json:"-"`

	at        time.Time
	key       []byte             // nil for null
	headers   processors.Inbound // only those that name the record
	tombstone bool
}

// Place is where a record is.
type Place struct {
	Topic     string `json:"topic"`
	Partition int32  `json:"partition"`
	Offset    int64  `json:"offset"`
}

// String returns topic/partition/offset.
func (p Place) String() string { return fmt.Sprintf("%s/%d/%d", p.Topic, p.Partition, p.Offset) }

// sourceOf reads the place of the original record from the headers of a dead letter, or of a mark.
func sourceOf(r processors.Inbound) (p Place, ok bool) {
	partition, err1 := strconv.ParseInt(string(r.Header(topics.HeaderErrorSourcePartition)), 10, 32)
	offset, err2 := strconv.ParseInt(string(r.Header(topics.HeaderErrorSourceOffset)), 10, 64)
	p = Place{string(r.Header(topics.HeaderErrorSourceTopic)), int32(partition), offset}
	return p, p.Topic != "" && err1 == nil && err2 == nil
}

// LetterTopic is the dead-letter topic of a group.
func LetterTopic(g goka.Group) string { return processors.DeadLetters(g).Topic() }

// IsMark reports whether a record of a dead-letter topic is no letter but says that one was written back.
func IsMark(r processors.Inbound) bool { return r.Header(topics.HeaderErrorRequeued) != nil }

// LetterOf returns the letter of a record. It does not keep the record, whose value can be large.
func LetterOf(group goka.Group, r processors.Inbound) *Letter {
	source, _ := sourceOf(r)
	l := &Letter{
		ID: Place{LetterTopic(group), r.Partition, r.Offset}.String(), Group: string(group), At: topics.Timestamp(r.Timestamp),
		Key: string(r.Key), Source: source, Reason: string(r.Header(topics.HeaderErrorReason)), Bytes: len(r.Value),
		Truncated: r.Header(topics.HeaderErrorTruncated) != nil, Partition: r.Partition, Offset: r.Offset,
		at: r.Timestamp, key: bytes.Clone(r.Key), tombstone: r.Value == nil,
	}
	for _, name := range identity {
		if v := r.Header(name); v != nil {
			l.headers.Headers = append(l.headers.Headers, processors.Header{Name: name, Value: bytes.Clone(v)})
		}
	}
	return l
}

// identity are the headers that name the record of a letter. Its mark has them too.
var identity = []string{
	topics.HeaderID, topics.HeaderErrorSourceTopic, topics.HeaderErrorSourcePartition, topics.HeaderErrorSourceOffset,
	topics.HeaderErrorGroup,
}

// Compare orders letters by their times.
func (l *Letter) Compare(o *Letter) int { return l.at.Compare(o.at) }

// Unfit says why a letter cannot be written back, "" if it can. exists reports whether the brokers have a topic.
func (l *Letter) Unfit(catalog topics.Catalog, exists func(topic string) bool) string {
	known := slices.ContainsFunc(catalog.Specs(), func(s topics.Spec) bool { return s.Name == l.Source.Topic })
	switch {
	case l.RequeuedAt != "":
		return "it was requeued at " + l.RequeuedAt
	case l.Truncated:
		return "its value was truncated or withheld: the original may still be at " + l.Source.String()
	case l.Source.Topic == "":
		return "it does not say where it is from"
	case !known || !exists(l.Source.Topic):
		return "the agent has no topic " + l.Source.Topic
	}
	return ""
}

// Refused says why a letter is not written back together with others, although it can be: the group refused its record, or the record
// ends what it finds. Written back, it is a new record, which can take effect this time: a late cancel ends the turn that is open now,
// and a repeated message runs a second turn once its request ID is forgotten. So someone must look at it and choose it. It returns ""
// for other letters.
func (l *Letter) Refused(catalog topics.Catalog) string {
	switch {
	case l.Source.Topic == catalog.SessionControl.Name():
		return "it would end or purge what the session has now: give its ID"
	case l.tombstone && l.Source.Topic == catalog.ThinkRequestResponse.Name():
		return "it would clear the conversation that the session has now: give its ID"
	case byRule(l.Reason):
		return "the group refused it, it did not fail (" + l.Reason + "): give its ID"
	}
	return ""
}

// rules are the packages whose reasons begin with their names.
var rules = []string{"turn", "fold", "gate", "delivery", "peer", "channel", "memoir"}

// failures end or are in the reasons of those packages that are about a defect or a row, not about the record.
var failures = []string{"cannot be applied", "cannot be decoded"}

// byRule reports whether a reason is that of a rule.
func byRule(reason string) bool {
	name, _, found := strings.Cut(reason, ": ")
	return found && slices.Contains(rules, name) &&
		!slices.ContainsFunc(failures, func(f string) bool { return strings.Contains(reason, f) })
}

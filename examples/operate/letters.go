package main

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/lovoo/goka"

	"github.com/turntable-streams/turntable/processors"
	"github.com/turntable-streams/turntable/topics"
)

// letter is a record of a group's dead-letter topic.
type letter struct {
	// ID is {topic}/{partition}/{offset} of the dead letter.
	ID    string `json:"id"`
	Group string `json:"group"`
	At    string `json:"at"`
	// Key is the key of the record. Source is where the record was first written.
	Key    string `json:"key"`
	Source place  `json:"source"`
	Reason string `json:"reason"`
	Bytes  int    `json:"bytes"`
	// Truncated says that the value is not whole, so that the record cannot be written back.
	Truncated bool `json:"truncated"`
	// RequeuedAt is when it was written back, empty if it was not.
	RequeuedAt string `json:"requeued_at,omitempty"`
	// FailedAgain says that the record of the letter is one that was written back before.
	FailedAgain bool `json:"failed_again"`

	record processors.Inbound
}

// place is where a record is.
type place struct {
	Topic     string `json:"topic"`
	Partition int32  `json:"partition"`
	Offset    int64  `json:"offset"`
}

func (p place) String() string { return fmt.Sprintf("%s/%d/%d", p.Topic, p.Partition, p.Offset) }

// sourceOf reads the place of the original record from the headers of a dead letter, or of a mark.
func sourceOf(r processors.Inbound) (p place, ok bool) {
	partition, err1 := strconv.ParseInt(string(r.Header(topics.HeaderErrorSourcePartition)), 10, 32)
	offset, err2 := strconv.ParseInt(string(r.Header(topics.HeaderErrorSourceOffset)), 10, 64)
	p = place{string(r.Header(topics.HeaderErrorSourceTopic)), int32(partition), offset}
	return p, p.Topic != "" && err1 == nil && err2 == nil
}

// letterTopics returns the dead-letter topics of groups that exist. group is that of all, or its name with or without the agent.
func (o *operator) letterTopics(group string) (groups []goka.Group, err error) {
	for _, g := range o.cluster.catalog.Groups() {
		named := group == "" || string(g) == group || strings.TrimPrefix(string(g), o.agent+"-") == group
		if named && o.cluster.names[letterTopic(g)] {
			groups = append(groups, g)
		}
	}
	if len(groups) == 0 && group != "" {
		return nil, fmt.Errorf("the group %s has no dead-letter topic: see turntable describe for the groups of %s", group, o.agent)
	}
	return groups, nil
}

func letterTopic(g goka.Group) string { return processors.DeadLetters(g).Topic() }

// letters returns the dead letters of a group in the order of their times.
func (o *operator) letters(ctx context.Context, group goka.Group) ([]*letter, error) {
	topic := letterTopic(group)
	reads, err := o.reader(ctx, topic)
	if err != nil {
		return nil, err
	}
	defer reads.close()
	var list []*letter
	done := newMarks()
	if err := reads.all(ctx, func(r processors.Inbound) {
		if at := r.Header(topics.HeaderErrorRequeued); at != nil {
			done.add(r)
			return
		}
		source, _ := sourceOf(r)
		list = append(list, &letter{
			ID: place{topic, r.Partition, r.Offset}.String(), Group: string(group), At: topics.Timestamp(r.Timestamp), Key: string(r.Key),
			Source: source, Reason: string(r.Header(topics.HeaderErrorReason)), Bytes: len(r.Value),
			Truncated: r.Header(topics.HeaderErrorTruncated) != nil, record: r,
		})
	}); err != nil {
		return nil, err
	}
	for _, l := range list {
		l.RequeuedAt = done.of(l)
		l.FailedAgain = l.RequeuedAt == "" && done.again(l)
	}
	slices.SortStableFunc(list, func(a, b *letter) int { return a.record.Timestamp.Compare(b.record.Timestamp) })
	return list, nil
}

// marks are the records of a dead-letter topic that say which letters were written back.
type marks struct {
	bySource map[place]string // when
	byID     map[string]mark  // the last one of a turntable.id
	written  map[string]bool  // the places of the records that were written back
}

type mark struct {
	at        string
	partition int32
	offset    int64
}

func newMarks() marks { return marks{map[place]string{}, map[string]mark{}, map[string]bool{}} }

// add adds a mark.
func (m marks) add(r processors.Inbound) {
	at := topics.Timestamp(r.Timestamp)
	m.written[string(r.Value)] = true
	if source, ok := sourceOf(r); ok {
		m.bySource[source] = at
	}
	if id := r.Header(topics.HeaderID); len(id) > 0 {
		m.byID[string(id)] = mark{at, r.Partition, r.Offset}
	}
}

// of returns when the record of a letter was written back, "" if it was not. A letter is done if its record was written back, or a
// copy of it with the same turntable.id. A later letter of another record with this turntable.id is not done: it has failed again.
func (m marks) of(l *letter) string {
	if at, ok := m.bySource[l.Source]; ok && l.Source.Topic != "" {
		return at
	}
	if id := l.record.Header(topics.HeaderID); len(id) > 0 {
		if mark, ok := m.byID[string(id)]; ok && (mark.partition != l.record.Partition || l.record.Offset < mark.offset) {
			return mark.at
		}
	}
	return ""
}

// again reports whether the record of a letter that is not done is one that was written back.
func (m marks) again(l *letter) bool {
	_, known := m.byID[string(l.record.Header(topics.HeaderID))]
	return known || m.written[l.Source.String()]
}

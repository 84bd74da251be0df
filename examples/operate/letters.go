package main

import (
	"bytes"
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

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

	partition int32
	offset    int64
	at        time.Time
	key       []byte             // nil for null
	headers   processors.Inbound // only those that name the record
	tombstone bool
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
	reads, err := o.reader(ctx, letterTopic(group))
	if err != nil {
		return nil, err
	}
	defer reads.close()
	return lettersOf(ctx, reads, group)
}

// letterOf returns the letter of a record. It does not keep the record, whose value can be large.
func letterOf(group goka.Group, r processors.Inbound) *letter {
	source, _ := sourceOf(r)
	l := &letter{
		ID: place{letterTopic(group), r.Partition, r.Offset}.String(), Group: string(group), At: topics.Timestamp(r.Timestamp),
		Key: string(r.Key), Source: source, Reason: string(r.Header(topics.HeaderErrorReason)), Bytes: len(r.Value),
		Truncated: r.Header(topics.HeaderErrorTruncated) != nil,
		partition: r.Partition, offset: r.Offset, at: r.Timestamp, key: bytes.Clone(r.Key), tombstone: r.Value == nil,
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

func lettersOf(ctx context.Context, reads *reader, group goka.Group) ([]*letter, error) {
	var list []*letter
	done := newMarks()
	if err := reads.all(ctx, func(r processors.Inbound) {
		if at := r.Header(topics.HeaderErrorRequeued); at != nil {
			done.add(r)
			return
		}
		list = append(list, letterOf(group, r))
	}); err != nil {
		return nil, err
	}
	for _, l := range list {
		l.RequeuedAt = done.of(l)
		l.FailedAgain = l.RequeuedAt == "" && done.again(l)
	}
	slices.SortStableFunc(list, func(a, b *letter) int { return a.at.Compare(b.at) })
	return list, nil
}

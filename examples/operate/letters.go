package main

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/lovoo/goka"

	"github.com/turntable-streams/turntable/processors"
	"github.com/turntable-streams/turntable/processors/operations"
)

// letterTopics returns the groups whose dead-letter topics exist. group is that of all, or its name with or without the agent.
func (o *operator) letterTopics(group string) (groups []goka.Group, err error) {
	for _, g := range o.cluster.catalog.Groups() {
		named := group == "" || string(g) == group || strings.TrimPrefix(string(g), o.agent+"-") == group
		if named && o.cluster.exists(operations.LetterTopic(g)) {
			groups = append(groups, g)
		}
	}
	if len(groups) == 0 && group != "" {
		return nil, fmt.Errorf("the group %s has no dead-letter topic: see turntable describe for the groups of %s", group, o.agent)
	}
	return groups, nil
}

// letters returns the dead letters of a group in the order of their times.
func (o *operator) letters(ctx context.Context, group goka.Group) ([]*operations.Letter, error) {
	reads, err := o.reader(ctx, operations.LetterTopic(group))
	if err != nil {
		return nil, err
	}
	defer reads.close()
	return lettersOf(ctx, reads, group)
}

func lettersOf(ctx context.Context, reads *reader, group goka.Group) ([]*operations.Letter, error) {
	var list []*operations.Letter
	done := operations.NewMarks()
	if err := reads.all(ctx, func(r processors.Inbound) {
		if operations.IsMark(r) {
			done.Add(r)
			return
		}
		list = append(list, operations.LetterOf(group, r))
	}); err != nil {
		return nil, err
	}
	for _, l := range list {
		done.Judge(l)
	}
	slices.SortStableFunc(list, (*operations.Letter).Compare)
	return list, nil
}

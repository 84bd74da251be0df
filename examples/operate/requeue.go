package main

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/lovoo/goka"

	"github.com/turntable-streams/turntable/processors/delivery"
	"github.com/turntable-streams/turntable/processors/operations"
)

// requeueCommand tries dead deliveries again and writes dead letters back to their topics.
type requeueCommand struct {
	ID    []string `arg:"" optional:"" help:"IDs of dead deliveries and dead letters, as turntable dead lists them."`
	All   bool     `help:"All dead deliveries, and all dead letters of failures that were not requeued. Refused records need their IDs."`
	Group string   `help:"With --all: only letters of this group, for example streams, and no deliveries."`
	Again bool     `help:"With --all: also letters of records that failed again after they were requeued."`
	Yes   bool     `short:"y" help:"Do not ask for confirmation."`
}

// requeueResult is the JSON of the command requeue. It is written also if the command fails.
type requeueResult struct {
	Agent    string    `json:"agent"`
	Requeued []string  `json:"requeued"`
	Skipped  []skipped `json:"skipped"`
}

// skipped is a letter that is not written back.
type skipped struct {
	ID     string `json:"id"`
	Reason string `json:"reason"`
}

func (c *requeueCommand) Run(ctx context.Context, o *operator) error {
	if c.All == (len(c.ID) > 0) || !c.All && (c.Group != "" || c.Again) {
		return usageError{errors.New("requeue: give IDs of turntable dead, or --all, with --group and --again if you like")}
	}
	if _, err := o.connect(ctx); err != nil {
		return err
	}
	if err := o.cluster.need(o.cluster.catalog.Table()); err != nil {
		return err
	}
	if c.All {
		what := o.agent
		if c.Group != "" {
			what += ", group " + c.Group
		}
		if err := o.confirm(ctx, c.Yes, "Requeue all that failed of %s? Receivers get the deliveries again, messages run turns, and results count "+
			"where a call still waits. Records that a group refused are left out.", what); err != nil {
			return err
		}
	}
	result := requeueResult{Agent: o.agent, Requeued: []string{}, Skipped: []skipped{}}
	err := c.requeue(ctx, o, &result)
	if err == nil {
		err = c.missing(result)
	}
	return errors.Join(o.print(result, func(t *columns) {
		for _, s := range result.Skipped {
			t.line("skipped", s.ID, s.Reason)
		}
		t.line(fmt.Sprintf("%d requeued, %d skipped", len(result.Requeued), len(result.Skipped)))
	}), err)
}

func (c *requeueCommand) wants(id string) bool { return c.All || slices.Contains(c.ID, id) }

// missing fails if an ID was not found or not requeued.
func (c *requeueCommand) missing(r requeueResult) error {
	for _, id := range c.ID {
		if slices.Contains(r.Requeued, id) {
			continue
		}
		if !slices.ContainsFunc(r.Skipped, func(s skipped) bool { return s.ID == id }) {
			return fmt.Errorf("there is no dead delivery and no dead letter %q: see turntable dead", id)
		}
		return fmt.Errorf("%s was not requeued: the output says why", id)
	}
	return nil
}

func (c *requeueCommand) requeue(ctx context.Context, o *operator, result *requeueResult) error {
	if c.Group == "" && o.cluster.has("deliveries") {
		if err := c.deliveries(ctx, o, result); err != nil {
			return err
		}
	}
	groups, err := o.letterTopics(c.Group)
	if err != nil {
		return err
	}
	if !c.All {
		groups = slices.DeleteFunc(groups, func(g goka.Group) bool { return !slices.ContainsFunc(c.ID, isOf(g)) })
	}
	if len(groups) == 0 {
		return nil
	}
	w, err := operations.NewWriteBack(ctx, o.brokers, o.cluster.catalog, account(), o.options...)
	if err != nil {
		return err
	}
	defer w.Close()
	for _, g := range groups {
		err = errors.Join(err, c.letters(ctx, o, w, g, result))
		if ctx.Err() != nil || errors.Is(err, operations.ErrLast) {
			return err
		}
	}
	return err
}

// deliveries requeues dead deliveries. A repeat has no effect: the record has the ID of this death.
func (c *requeueCommand) deliveries(ctx context.Context, o *operator, result *requeueResult) error {
	dead, err := o.deliveries(ctx, func(v delivery.View) bool { return isDead(v) && c.wants(v.DeliveryID) })
	if err != nil {
		return err
	}
	for _, v := range dead {
		if err := v.Requeue(ctx, o.cluster.to, o.agent, account()); err != nil {
			return publishFailed(ctx, err)
		}
		result.Requeued = append(result.Requeued, v.DeliveryID)
	}
	return nil
}

// letters writes the letters of a group back.
func (c *requeueCommand) letters(ctx context.Context, o *operator, w *operations.WriteBack, g goka.Group, result *requeueResult) error {
	reads, err := o.reader(ctx, operations.LetterTopic(g))
	if err != nil {
		return err
	}
	defer reads.close()
	letters, err := lettersOf(ctx, reads, g)
	if err != nil {
		return err
	}
	done := operations.NewMarks()
	failed := 0
	for _, l := range letters {
		if !c.wants(l.ID) || c.All && l.RequeuedAt != "" {
			continue
		}
		reason := l.Unfit(o.cluster.catalog, o.cluster.exists)
		switch {
		case done.Of(l) != "":
			reason = "it is a copy of one that was requeued"
		case c.All && !c.Again && l.FailedAgain:
			reason = "it failed again after it was requeued: give its ID, or --again"
		case c.All && reason == "":
			reason = l.Refused(o.cluster.catalog)
		}
		if reason != "" {
			result.Skipped = append(result.Skipped, skipped{l.ID, reason})
			continue
		}
		record, err := reads.record(ctx, l.Partition, l.Offset)
		if err != nil {
			return fmt.Errorf("%d requeued, then %s was not written: %w; run the command again for the rest", len(result.Requeued), l.ID, err)
		}
		mark, err := w.Write(ctx, l, record)
		if errors.Is(err, operations.ErrNotWritten) {
			failed++
			result.Skipped = append(result.Skipped, skipped{l.ID, oneLine(err)})
			continue
		}
		if err != nil {
			return fmt.Errorf("%d requeued, then %s failed: %w; run the command again for the rest", len(result.Requeued), l.ID, err)
		}
		done.Add(mark)
		result.Requeued = append(result.Requeued, l.ID)
		o.waiting("requeued %s", l.ID)
	}
	if failed > 0 {
		return fmt.Errorf("%d dead letters of %s could not be written back: the output says why", failed, g)
	}
	return nil
}

// isOf reports whether the ID of a letter is one of a group.
func isOf(g goka.Group) func(id string) bool {
	return func(id string) bool { return strings.HasPrefix(id, operations.LetterTopic(g)+"/") }
}

package unit

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/lovoo/goka"

	"github.com/turntable-streams/turntable/internal/cut"
	"github.com/turntable-streams/turntable/internal/recovery"
	"github.com/turntable-streams/turntable/internal/timer"
)

// inputs are the topics that a group reads, as a broker describes them.
type inputs map[string]recovery.Described

// recreated reports whether an input was deleted and recreated since an earlier description.
func (in inputs) recreated(since inputs) bool {
	for topic, now := range in {
		if was, ok := since[topic]; ok && was.ID != now.ID {
			return true
		}
	}
	return false
}

// ids are the topic IDs.
func (in inputs) ids() map[string]string {
	ids := make(map[string]string, len(in))
	for topic, d := range in {
		ids[topic] = d.ID
	}
	return ids
}

// inputTopics are the inputs that are on the broker, the group's loop topic not included.
func (u *Unit) inputTopics() []string {
	var topics []string
	for _, in := range u.cfg.Graph.InputStreams() {
		if in.Topic() != timer.Topic(u.group) {
			topics = append(topics, in.Topic())
		}
	}
	return topics
}

// describeInputs learns the IDs of the inputs, by which it makes the listing of the attempt, and checks that all topics that must have as many partitions as each other
// do: the inputs, the tables that are joined, the group's table and its loop topic.
func (r *run) describeInputs() error {
	u := r.unit
	names := u.inputTopics()
	together := slices.Clone(names)
	for _, join := range u.cfg.Graph.JointTables() {
		together = append(together, join.Topic())
	}
	if loop := u.cfg.Graph.LoopStream(); loop != nil {
		together = append(together, loop.Topic())
	}
	if u.cfg.Graph.GroupTable() != nil {
		together = append(together, string(goka.GroupTable(u.cfg.Graph.Group())))
	}
	found, err := r.topics.Describe(together...)
	if err != nil {
		return err
	}
	r.inputs = inputs{}
	for _, name := range names {
		if d, ok := found[name]; ok {
			r.inputs[name] = d
		}
	}
	r.listing = cut.NewListing(names, r.inputs.ids(), &u.unlisted, u.cfg.Logger)
	return copartitioned(found)
}

// copartitioned returns an error that wraps recovery.ErrPartitions unless all topics have the same number of partitions.
func copartitioned(found map[string]recovery.Described) error {
	byCount := map[int][]string{}
	for topic, d := range found {
		byCount[d.Partitions] = append(byCount[d.Partitions], topic)
	}
	if len(byCount) < 2 {
		return nil
	}
	var counts []string
	for _, n := range slices.Sorted(maps.Keys(byCount)) {
		slices.Sort(byCount[n])
		counts = append(counts, fmt.Sprintf("%s: %d", strings.Join(byCount[n], ", "), n))
	}
	return fmt.Errorf("%w: the records of a key would be on another partition than its row (%s). Partitions cannot be added "+
		"to topics in use: run a second pipeline on new topics and move the writers there; or drain, stop the group, delete "+
		"these topics, create them with the new count, and start again without the rows",
		recovery.ErrPartitions, strings.Join(counts, "; "))
}

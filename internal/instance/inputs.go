package instance

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/lovoo/goka"

	"github.com/turntable-streams/turntable/internal/cut"
	"github.com/turntable-streams/turntable/internal/store"
)

// inputs are the topics that a group reads, as a broker describes them.
type inputs map[string]Described

// recreated returns an input that was deleted and recreated after an earlier description, or "".
func (in inputs) recreated(since inputs) string {
	for topic, now := range in {
		if was := since[topic].ID; was != "" && now.ID != "" && was != now.ID {
			return topic
		}
	}
	return ""
}

// ids returns the topic IDs.
func (in inputs) ids() map[string]string {
	ids := make(map[string]string, len(in))
	for topic, d := range in {
		ids[topic] = d.ID
	}
	return ids
}

// inputTopics returns the inputs that are on the broker, without the group's loop topic.
func (inst *Instance) inputTopics() []string {
	topics := inst.cfg.Repartitioned.Topics()
	for _, in := range inst.cfg.Graph.InputStreams() {
		if in.Topic() != store.TimerTopic(inst.group) {
			topics = append(topics, in.Topic())
		}
	}
	return topics
}

// repartitions reports whether an input may have any number of partitions.
func (inst *Instance) repartitions(topic string) bool { return inst.cfg.Repartitioned[topic] != nil }

// firstInput returns the first input that is on the broker and that Goka reads, or "".
func (inst *Instance) firstInput() string {
	for _, in := range inst.cfg.Graph.InputStreams() {
		if in.Topic() != store.TimerTopic(inst.group) {
			return in.Topic()
		}
	}
	return ""
}

// described returns the topics of the group that watchInputs describes: the inputs, the joined tables, the group's table
// and its loop topic. Topics that the group creates may not exist yet.
func (r *run) described() []string {
	inst := r.instance
	topics := inst.inputTopics()
	for _, join := range inst.cfg.Graph.JointTables() {
		topics = append(topics, join.Topic())
	}
	if loop := inst.cfg.Graph.LoopStream(); loop != nil {
		topics = append(topics, loop.Topic())
	}
	if inst.cfg.Graph.GroupTable() != nil {
		topics = append(topics, string(goka.GroupTable(inst.cfg.Graph.Group())))
	}
	return topics
}

// describeInputs reads the IDs of the inputs, makes the listing of the run from them, and checks that all copartitioned
// topics have the same number of partitions.
func (r *run) describeInputs() error {
	inst := r.instance
	names := inst.inputTopics()
	found, err := r.topics.Describe(r.described()...)
	if err != nil {
		return err
	}
	r.inputs = inputs{}
	for _, name := range names {
		if d, ok := found[name]; ok {
			r.inputs[name] = d
		}
	}
	r.epochs = r.newEpochs()
	partitions := 0
	if inst.cfg.Graph.GroupTable() != nil {
		partitions = found[inst.firstInput()].Partitions
	}
	r.listing = cut.NewListing(names, r.inputs.ids(), partitions, r.epochs, inst.attempts, &inst.unlisted, inst.cfg.Logger)
	return r.copartitioned(found)
}

// copartitioned returns an error that wraps ErrPartitions unless all topics that Goka reads have the same number of
// partitions.
func (r *run) copartitioned(found inputs) error {
	byCount := map[int][]string{}
	for topic, d := range found {
		if r.instance.repartitions(topic) {
			continue
		}
		byCount[d.Partitions] = append(byCount[d.Partitions], topic)
	}
	if len(byCount) < 2 {
		return nil
	}
	var counts []string
	for _, n := range slices.Sorted(maps.Keys(byCount)) {
		slices.Sort(byCount[n])
		counts = append(counts, fmt.Sprintf("%d of %s", n, strings.Join(byCount[n], ", ")))
	}
	return parted(strings.Join(counts, "; "))
}

// parted returns the error for a group whose keys have moved to other partitions.
func parted(counts string) error {
	return fmt.Errorf("%w: a key's records would be on another partition than its row (partitions: %s). Partitions cannot "+
		"be added to topics in use: stop the agent and run turntable repartition (processors/archive), which moves the rows too; if it "+
		"has begun, run it again, and delete no topic",
		ErrPartitions, counts)
}

// partedFrom returns the error for a group whose rows are spread over another number of partitions than an input has now.
func partedFrom(rows int, topic string, now int) error {
	return parted(fmt.Sprintf("%d when the rows were written; %d of %s", rows, now, topic))
}

package cut

import (
	"maps"
	"math"
	"slices"

	"github.com/IBM/sarama"
	"github.com/lovoo/goka"
)

// Goka reads only inputs that have as many partitions as its table. Inputs with other numbers of partitions are hidden from
// it: the group reads them itself and sends each record to a topic that Goka reads, under the key that decides its
// partition. These records pass the gate like those that Goka reads, so their offsets join the cut (exactly once: the same
// transaction) once what was sent for them is acknowledged.

// Repartitioned are the inputs of a group that may have any number of partitions, by topic.
type Repartitioned map[string]Repartition

// Repartition returns what is sent for a record. It must not panic.
type Repartition func(m *sarama.ConsumerMessage) Outgoing

// Outgoing is a record to be sent. A nil value is a tombstone. Headers may include private ones.
type Outgoing struct {
	Topic, Key string
	Value      []byte
	Headers    goka.Headers
}

// Topics returns the names of the inputs, sorted.
func (r Repartitioned) Topics() []string { return slices.Sorted(maps.Keys(r)) }

// has reports whether Goka does not read a topic.
func (r Repartitioned) has(topic string) bool { return r[topic] != nil }

// Send sends a record that no callback emits. done is called with the outcome, once and from any goroutine.
func (p *Producer) Send(out Outgoing, done func(error)) {
	e := newEmitted(out.Topic, out.Key, out.Value).with(out.Headers)
	e.waiter = promised(done)
	p.emitOutput(noPartition, e)
}

// noPartition is the partition of the outputs that belong to no callback: no row waits for them.
const noPartition = -1

// repartition sends the records of a claim that Goka does not read, until the series' context ends.
func (g *generation) repartition(c *claim, outgoing Repartition) {
	o := g.group.opts
	for {
		select {
		case m := <-c.out:
			o.Send(outgoing(m), func(err error) {
				if err != nil { // the record is not released: no cut commits its offset
					g.group.Fail(err)
					return
				}
				g.series.Release()
			})
		case <-g.series.Context().Done():
			return
		}
	}
}

// Assignor returns a balance strategy that assigns the partitions of the repartitioned inputs separately, because inner
// refuses topics with different numbers of partitions. Each of these inputs is divided into ranges, as Goka's strategy
// divides the copartitioned topics: with the same number of partitions, the assignment equals that of inner alone, so that
// members of earlier versions, which have Goka read these inputs, can be in the same group during an upgrade.
func (r Repartitioned) Assignor(inner sarama.BalanceStrategy) sarama.BalanceStrategy {
	if len(r) == 0 {
		return inner
	}
	return assignor{inner, r}
}

type assignor struct {
	sarama.BalanceStrategy
	repartitioned Repartitioned
}

// Plan implements sarama.BalanceStrategy.
func (a assignor) Plan(members map[string]sarama.ConsumerGroupMemberMetadata, topics map[string][]int32,
) (sarama.BalanceStrategyPlan, error) {
	copartitioned := maps.Clone(topics)
	maps.DeleteFunc(copartitioned, func(topic string, _ []int32) bool { return a.repartitioned.has(topic) })
	readers := make(map[string]sarama.ConsumerGroupMemberMetadata, len(members))
	for id, m := range members {
		m.Topics = slices.DeleteFunc(slices.Clone(m.Topics), a.repartitioned.has)
		readers[id] = m
	}
	plan, err := a.BalanceStrategy.Plan(readers, copartitioned)
	if err != nil {
		return nil, err
	}
	for topic, partitions := range topics {
		if a.repartitioned.has(topic) {
			a.divide(plan, members, topic, slices.Sorted(slices.Values(partitions)))
		}
	}
	return plan, nil
}

// divide assigns ranges of a topic's partitions to the members that read it.
func (a assignor) divide(plan sarama.BalanceStrategyPlan, members map[string]sarama.ConsumerGroupMemberMetadata, topic string,
	partitions []int32,
) {
	var readers []string
	for id, m := range members {
		if slices.Contains(m.Topics, topic) {
			readers = append(readers, id)
		}
	}
	slices.Sort(readers)
	share := float64(len(partitions)) / float64(len(readers))
	bound := func(n int) int { return int(math.Floor(float64(n)*share + 0.5)) }
	for i, id := range readers {
		if from, to := bound(i), bound(i+1); from < to {
			plan.Add(id, topic, partitions[from:to]...)
		}
	}
}

package main

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/turntable-streams/turntable/internal/testing/kafkatest"
	"github.com/turntable-streams/turntable/internal/testing/wiretest"
)

// brokers is the cluster on which a run measures.
type brokers struct {
	description string
	addrs       []string
	processes   []*process // none if another program runs it
	cluster     *kafkatest.Cluster
	client      *kgo.Client
	admin       *kadm.Client
}

func startBrokers(ctx context.Context, s settings) (*brokers, error) {
	b := &brokers{}
	switch {
	case len(s.brokers) > 0:
		b.description, b.addrs = "brokers "+strings.Join(s.brokers, ","), s.brokers
	case s.kafka:
		// Brokers delete the data of a scenario when it ends, instead of a minute later.
		o := kafkatest.Options{Optimized: true, Properties: map[string]string{"log.segment.delete.delay.ms": "1000"}}
		c, err := kafkatest.Start(ctx, o)
		if err != nil {
			return nil, err
		}
		b.description, b.cluster, b.addrs = "Apache Kafka "+kafkatest.Version(), c, c.Bootstrap()
		for _, pid := range childrenOf(os.Getpid()) {
			b.processes = append(b.processes, &process{name: "kafka", pid: pid})
		}
	default:
		p, err := startChild(ctx, "broker", childSpec{Kind: kindBroker}, readyTimeout)
		if err != nil {
			return nil, err
		}
		b.description, b.addrs, b.processes = "embedded broker", p.words, []*process{p}
	}
	var err error
	if b.client, err = kgo.NewClient(kgo.SeedBrokers(b.addrs...)); err != nil {
		return nil, errors.Join(fmt.Errorf("bench: brokers: %w", err), b.stop())
	}
	b.admin = kadm.NewClient(b.client)
	return b, nil
}

// end stops the brokers that this program started.
func (b *brokers) stop() error {
	if b.client != nil {
		b.client.Close()
	}
	var errs []error
	for _, p := range b.processes {
		errs = append(errs, p.stop())
	}
	if b.cluster != nil {
		errs = append(errs, b.cluster.Close())
	}
	return errors.Join(errs...)
}

// topics creates missing topics and returns the partition count. Topics that exist determine it.
func (b *brokers) createTopics(ctx context.Context, agent string, partitions int32) (int32, error) {
	if err := wiretest.CreateTopics(ctx, b.addrs, agent, partitions); err != nil {
		return 0, fmt.Errorf("bench: %w", err)
	}
	// Brokers learn of new topics one after another, so this repeats the request until all topics are known.
	names := wiretest.NamesOf(agent)
	wanted := append(names.Inputs(), names.Enriched, names.ToolUse, names.AllComplete, names.MessageOutput)
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	ctx, stop := context.WithTimeout(ctx, readyTimeout)
	defer stop()
	for {
		counts, err := b.partitions(ctx, wanted)
		if err != nil {
			return 0, err
		}
		if len(counts) == len(wanted) {
			return counts[names.MessageInput], nil
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			return 0, fmt.Errorf("bench: topics of %s: %w", agent, context.Cause(ctx))
		}
	}
}

// partitions returns the partition counts of existing topics. It asks the brokers, because the admin client's listing can
// be stale.
func (b *brokers) partitions(ctx context.Context, topics []string) (map[string]int32, error) {
	req := kmsg.NewPtrMetadataRequest()
	for _, t := range topics {
		topic := kmsg.NewMetadataRequestTopic()
		topic.Topic = kmsg.StringPtr(t)
		req.Topics = append(req.Topics, topic)
	}
	resp, err := req.RequestWith(ctx, b.client)
	if err != nil {
		return nil, fmt.Errorf("bench: list topics: %w", err)
	}
	counts := make(map[string]int32, len(topics))
	for _, t := range resp.Topics {
		if t.ErrorCode == 0 && t.Topic != nil && len(t.Partitions) > 0 {
			counts[*t.Topic] = int32(len(t.Partitions))
		}
	}
	return counts, nil
}

// forget deletes the topics of an agent.
func (b *brokers) deleteTopics(ctx context.Context, agent string) error {
	have, err := b.admin.ListTopics(ctx)
	if err != nil {
		return fmt.Errorf("bench: list topics: %w", err)
	}
	var ours []string
	for _, t := range have.Names() {
		if strings.HasPrefix(t, agent+"-") {
			ours = append(ours, t)
		}
	}
	if _, err := b.admin.DeleteTopics(ctx, ours...); err != nil {
		return fmt.Errorf("bench: delete topics: %w", err)
	}
	return nil
}

// logs returns the bytes that the topics of an agent have on the brokers' disks, or nil if the brokers do not report
// them.
func (b *brokers) logSizes(ctx context.Context, agent string) map[string]int64 {
	dirs, err := b.admin.DescribeAllLogDirs(ctx, nil)
	if err != nil {
		return nil
	}
	sizes := map[string]int64{}
	dirs.Each(func(d kadm.DescribedLogDir) {
		for topic, partitions := range d.Topics {
			short, ok := strings.CutPrefix(topic, agent+"-")
			for _, p := range partitions {
				if ok {
					sizes[short] += p.Size
				}
			}
		}
	})
	return sizes
}

// ends returns the current end offsets of the topics of an agent.
func (b *brokers) endOffsets(ctx context.Context, topics ...string) (map[string]map[int32]kgo.Offset, error) {
	ends, err := b.admin.ListEndOffsets(ctx, topics...)
	if err == nil {
		err = ends.Error()
	}
	if err != nil {
		return nil, fmt.Errorf("bench: ends of topics: %w", err)
	}
	return ends.KOffsets(), nil
}

// records returns the sum of the end offsets of topics. A topic that does not exist counts as 0.
func (b *brokers) records(ctx context.Context, topics ...string) (int64, error) {
	counts, err := b.partitions(ctx, topics)
	if err != nil || len(counts) == 0 {
		return 0, err
	}
	ends, err := b.endOffsets(ctx, slices.Collect(maps.Keys(counts))...)
	var n int64
	for _, partitions := range ends {
		for _, at := range partitions {
			n += at.EpochOffset().Offset
		}
	}
	return n, err
}

// childrenOf returns the child processes of a process. Without /proc it returns none.
func childrenOf(parent int) []int {
	names, _ := filepath.Glob("/proc/[0-9]*/stat")
	var pids []int
	for _, name := range names {
		stat, err := os.ReadFile(name)
		fields := strings.Fields(string(stat[strings.LastIndexByte(string(stat), ')')+1:]))
		if err != nil || len(fields) < 2 || fields[1] != strconv.Itoa(parent) {
			continue
		}
		if pid, err := strconv.Atoi(filepath.Base(filepath.Dir(name))); err == nil {
			pids = append(pids, pid)
		}
	}
	return pids
}

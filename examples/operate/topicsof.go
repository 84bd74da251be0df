package main

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/IBM/sarama"

	"github.com/turntable-streams/turntable/topics"
)

// topicsCommand compares the topics with the catalog.
type topicsCommand struct {
	With  []string `placeholder:"CAPABILITY" help:"Capabilities that the agent is to have, besides those of which a topic exists: compaction, deliveries, events, gates, peers, channels, memoir, costs, latencies, crews."`
	Check bool     `help:"Fail if a topic is missing or is not as it should be."`
}

// topicList is the JSON of the command topics.
type topicList struct {
	Agent        string      `json:"agent"`
	Capabilities []string    `json:"capabilities"`
	Problems     int         `json:"problems"`
	Topics       []topicView `json:"topics"`
}

// topicView is a topic of the catalog. Of one that is missing, only the first three fields are set.
type topicView struct {
	Topic   string `json:"topic"`
	Exists  bool   `json:"exists"`
	Problem string `json:"problem,omitempty"`
	// Partitions, Replication and InSync are the numbers of partitions, of replicas of each, and of those of them that are in sync,
	// in the worst partition.
	Partitions  int    `json:"partitions,omitzero"`
	Replication int    `json:"replication,omitzero"`
	InSync      int    `json:"in_sync,omitzero"`
	Cleanup     string `json:"cleanup,omitempty"`
	RetentionMS *int64 `json:"retention_ms,omitempty"` // -1: unlimited; absent where nothing is deleted by age
}

func (c *topicsCommand) Run(ctx context.Context, o *operator) error {
	cluster, err := o.connect(ctx)
	if err != nil {
		return err
	}
	catalog, on, err := c.catalogOf(cluster, o.agent)
	if err != nil {
		return err
	}
	list := topicList{Agent: o.agent, Capabilities: on}
	if list.Topics, err = within(ctx, "topics", func() ([]topicView, error) { return cluster.topicViews(catalog.Specs()) }); err != nil {
		return err
	}
	for _, v := range list.Topics {
		if v.Problem != "" {
			list.Problems++
		}
	}
	if err := o.print(list, func(t *columns) {
		t.line("TOPIC", "PARTITIONS", "REPLICAS", "IN SYNC", "CLEANUP", "RETENTION", "PROBLEM")
		for _, v := range list.Topics {
			t.line(v.Topic, number(v.Partitions), number(v.Replication), number(v.InSync), v.Cleanup, retentionOf(v.RetentionMS), v.Problem)
		}
	}); err != nil {
		return err
	}
	if c.Check && list.Problems > 0 {
		return fmt.Errorf("%d topics have problems: processors.EnsureTopics, or the start of the groups, creates those that are missing", list.Problems)
	}
	return nil
}

// catalogOf returns the catalog with the capabilities that exist and those that are asked for.
func (c *topicsCommand) catalogOf(cluster *cluster, agent string) (catalog topics.Catalog, on []string, err error) {
	on = []string{}
	var options []topics.CatalogOption
	for _, capability := range capabilities {
		if cluster.has(capability.name) || slices.Contains(c.With, capability.name) {
			on, options = append(on, capability.name), append(options, capability.option)
		}
	}
	for _, name := range c.With {
		if !slices.Contains(on, name) {
			return catalog, on, usageError{fmt.Errorf("--with: there is no capability %q", name)}
		}
	}
	catalog, err = topics.For(agent, options...)
	return catalog, on, err
}

// topicViews returns the topics that the agent must have, and the others of the catalog that exist.
func (c *cluster) topicViews(specs []topics.Spec) (list []topicView, err error) {
	var names []string
	for _, s := range specs {
		if c.names[s.Name] {
			names = append(names, s.Name)
		}
	}
	described := map[string]*sarama.TopicMetadata{}
	if len(names) > 0 {
		metadata, err := c.admin.DescribeTopics(names)
		if err != nil {
			return nil, err
		}
		for _, m := range metadata {
			described[m.Name] = m
		}
	}
	configs, err := c.configs(names)
	if err != nil {
		return nil, err
	}
	list = []topicView{}
	common := commonPartitions(specs, described)
	for _, s := range specs {
		m := described[s.Name]
		switch {
		case m != nil:
			list = append(list, viewOfTopic(s, m, configs[s.Name], common))
		case s.Created:
			list = append(list, topicView{Topic: s.Name, Problem: "missing"})
		}
	}
	return list, nil
}

// commonPartitions is the number of partitions that most co-partitioned topics have.
func commonPartitions(specs []topics.Spec, described map[string]*sarama.TopicMetadata) (common int) {
	count := map[int]int{}
	for _, s := range specs {
		if m := described[s.Name]; m != nil && s.CoPartitioned && s.Created {
			count[len(m.Partitions)]++
		}
	}
	for n := range count {
		if cmp.Or(cmp.Compare(count[n], count[common]), cmp.Compare(n, common)) > 0 {
			common = n
		}
	}
	return common
}

// configs returns the settings of topics by their names.
func (c *cluster) configs(names []string) (map[string][]sarama.ConfigEntry, error) {
	var resources []*sarama.ConfigResource
	for _, name := range names {
		resources = append(resources, &sarama.ConfigResource{
			Type: sarama.TopicResource, Name: name, ConfigNames: []string{cleanupPolicy, retentionMS},
		})
	}
	settings := map[string][]sarama.ConfigEntry{}
	if len(resources) == 0 {
		return settings, nil
	}
	results, err := c.admin.DescribeConfigs(resources, sarama.DescribeConfigsOptions{})
	if err != nil {
		return nil, err
	}
	for _, r := range results {
		if r.ErrorCode != sarama.ErrNoError {
			return nil, fmt.Errorf("configuration of %s: %w: the principal needs DESCRIBE_CONFIGS on it", r.Name, r.ErrorCode)
		}
		settings[r.Name] = r.Configs
	}
	return settings, nil
}

// The settings of a topic that are shown.
const (
	cleanupPolicy = "cleanup.policy"
	retentionMS   = "retention.ms"
)

func viewOfTopic(s topics.Spec, m *sarama.TopicMetadata, settings []sarama.ConfigEntry, common int) topicView {
	v := topicView{Topic: s.Name, Exists: true, Partitions: len(m.Partitions)}
	for i, p := range m.Partitions {
		if i == 0 || len(p.Isr) < v.InSync {
			v.Replication, v.InSync = len(p.Replicas), len(p.Isr)
		}
	}
	for _, e := range settings {
		switch e.Name {
		case cleanupPolicy:
			v.Cleanup = e.Value
		case retentionMS:
			if ms, err := strconv.ParseInt(e.Value, 10, 64); err == nil {
				v.RetentionMS = &ms
			}
		}
	}
	if v.Cleanup == string(topics.CleanupCompact) {
		v.RetentionMS = nil
	}
	var problems []string
	if s.Created && s.CoPartitioned && v.Partitions != common {
		problems = append(problems, fmt.Sprintf("has %d partitions, other topics of the sessions have %d", v.Partitions, common))
	}
	if s.Created && v.Cleanup != "" && !samePolicy(v.Cleanup, string(s.Cleanup)) {
		problems = append(problems, fmt.Sprintf("cleanup.policy should be %s", s.Cleanup))
	}
	if v.InSync < v.Replication {
		problems = append(problems, fmt.Sprintf("%d of %d replicas are in sync", v.InSync, v.Replication))
	}
	v.Problem = strings.Join(problems, "; ")
	return v
}

func samePolicy(a, b string) bool {
	left, right := strings.Split(a, ","), strings.Split(b, ",")
	slices.Sort(left)
	slices.Sort(right)
	return slices.Equal(left, right)
}

// number writes 0 as nothing.
func number(n int) string {
	if n == 0 {
		return ""
	}
	return strconv.Itoa(n)
}

func retentionOf(ms *int64) string {
	switch {
	case ms == nil:
		return ""
	case *ms < 0:
		return "unlimited"
	}
	return rounded(time.Duration(*ms) * time.Millisecond)
}

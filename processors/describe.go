package processors

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/lovoo/goka"

	"github.com/turntable-streams/turntable/topics"
)

// Topology is a description of groups, of the programs beside them, and of their topics. The JSON names of its fields do not change.
type Topology struct {
	Groups []TopologyGroup `json:"groups"`
	// Programs are those of WithCatalog.
	Programs []topics.Program `json:"programs"`
	// Topics are all topics that groups and programs read or write, and those of WithCatalog: the topics to create.
	Topics []TopologyTopic `json:"topics"`
	// Journal is the topic that exists while package archive restores or moves the topics of the catalog: groups and workers look for it
	// when they start. Only WithCatalog sets it.
	Journal string `json:"journal,omitempty"`
}

// TopologyGroup is a Goka group. The texts are names of topics; a group without a loop, a table or dead letters has "".
type TopologyGroup struct {
	Group  string   `json:"group"`
	Inputs []string `json:"inputs"`
	// Loop carries records to the partition of their key.
	Loop  string `json:"loop,omitempty"`
	Table string `json:"table,omitempty"`
	// Deadlines says whether rows of the table have deadlines.
	Deadlines bool `json:"deadlines"`
	// Lookups and Joins are tables of other groups.
	Lookups []string `json:"lookups"`
	Joins   []string `json:"joins"`
	Outputs []string `json:"outputs"`
	// DeadLetters is the default name, also if the processor has WithDeadLetters.
	DeadLetters string `json:"dead_letters,omitempty"`
	// CoPartitioned have the same number of partitions: the inputs that are not Repartitioned, the joins, the loop and the table.
	CoPartitioned []string `json:"co_partitioned"`
}

// TopologyTopic is a topic. What is not known is empty, and is left to the broker when the topic is created.
type TopologyTopic struct {
	Name string `json:"name"`
	// Record is the type of the values, Codec the Go type of their codec in the groups, Key what the records are keyed by.
	Record          string         `json:"record,omitempty"`
	Codec           string         `json:"codec,omitempty"`
	Key             topics.Key     `json:"key,omitempty"`
	Cleanup         topics.Cleanup `json:"cleanup,omitempty"`
	RetentionMS     int64          `json:"retention_ms,omitempty"`
	CompactionLagMS int64          `json:"min_compaction_lag_ms,omitempty"`
	// CoPartitioned topics have the same number of partitions as all others that are CoPartitioned, see topics.Spec.
	CoPartitioned bool `json:"co_partitioned"`
}

// Describe describes graphs. It needs no brokers, and does not change or use up the graphs. Graphs that run in one process, or that
// share topics, belong together. What an output is apart from its name is known if the topic is also the input of a graph, or
// in the catalog of WithCatalog.
func Describe(graphs ...*goka.GroupGraph) Topology {
	t := Topology{Groups: []TopologyGroup{}, Programs: []topics.Program{}, Topics: []TopologyTopic{}}
	for _, g := range graphs {
		t.addGraph(g)
	}
	return t
}

// WithCatalog returns the topology with what the catalog says about its topics, with the topics that the catalog creates, and with
// programs, for example those of Catalog.Programs. It replaces earlier programs of the same names.
func (t Topology) WithCatalog(c topics.Catalog, programs ...topics.Program) Topology {
	t.Topics, t.Programs, t.Journal = slices.Clone(t.Topics), slices.Clone(t.Programs), c.Archive()
	for _, p := range programs {
		t.Programs = append(slices.DeleteFunc(t.Programs, func(has topics.Program) bool { return has.Name == p.Name }), p)
		for _, name := range slices.Concat(p.Reads, p.Writes) {
			t.topic(name)
		}
	}
	for _, s := range c.Specs() {
		if s.Created || slices.ContainsFunc(t.Topics, func(has TopologyTopic) bool { return has.Name == s.Name }) {
			of := t.topic(s.Name)
			co := of.CoPartitioned
			of.specify(s)
			of.CoPartitioned = of.CoPartitioned || co
		}
	}
	return t
}

// Specs returns the topics as WithTopicSpecs takes them. Prefer WithTopics for those of a catalog: it also gives the loop the
// retention of the inputs.
func (t Topology) Specs() []topics.Spec {
	specs := make([]topics.Spec, len(t.Topics))
	for i, of := range t.Topics {
		specs[i] = topics.Spec{
			Name: of.Name, Record: of.Record, Key: of.Key, Cleanup: of.Cleanup, Retention: time.Duration(of.RetentionMS) * time.Millisecond,
			CompactionLag: time.Duration(of.CompactionLagMS) * time.Millisecond, CoPartitioned: of.CoPartitioned, Created: true,
		}
	}
	return specs
}

func (t *Topology) addGraph(g *goka.GroupGraph) {
	d := TopologyGroup{
		Group: string(g.Group()), Inputs: []string{}, Lookups: t.named(g.LookupTables()), Joins: t.named(g.JointTables()),
		Outputs: []string{}, CoPartitioned: []string{},
	}
	specs, loose := map[string]topics.Spec{}, map[string]bool{}
	for _, in := range sourcesOf(g) {
		specs[in.in.name()], loose[in.in.name()] = in.in.spec(), in.in.repartition(defaults(g.Group())) != nil
	}
	for _, name := range t.named(g.InputStreams()) {
		d.Inputs = append(d.Inputs, name)
		t.topic(name).specify(specs[name])
		if !loose[name] {
			d.CoPartitioned = append(d.CoPartitioned, name)
		}
	}
	d.CoPartitioned = append(d.CoPartitioned, d.Joins...)
	for _, name := range slices.Concat(d.Lookups, d.Joins) {
		t.topic(name).Cleanup = topics.CleanupCompact
	}
	if loop := g.LoopStream(); loop != nil {
		d.Loop = t.named(goka.Edges{loop})[0]
		t.topic(d.Loop).Cleanup = topics.CleanupDelete
		d.CoPartitioned = append(d.CoPartitioned, d.Loop)
	}
	if table := g.GroupTable(); table != nil {
		d.Table = t.named(goka.Edges{table})[0]
		t.topic(d.Table).Cleanup = topics.CleanupCompact
		d.CoPartitioned = append(d.CoPartitioned, d.Table)
		_, d.Deadlines = timedOf(g)
	}
	for _, name := range t.named(g.OutputStreams()) {
		if name == string(deadLetterStream(g.Group())) {
			t.topic(name).Cleanup = topics.CleanupDelete
			d.DeadLetters = name
			continue
		}
		d.Outputs = append(d.Outputs, name)
	}
	for _, name := range d.CoPartitioned {
		t.topic(name).CoPartitioned = true
	}
	t.Groups = append(t.Groups, d)
}

// named returns the topics of edges, and adds them to those of the topology.
func (t *Topology) named(edges goka.Edges) []string {
	names := []string{}
	for _, e := range edges {
		for name := range strings.SplitSeq(e.Topic(), ",") { // goka.Inputs is one edge
			names = append(names, name)
			if of := t.topic(name); of.Codec == "" {
				of.Codec = codecName(e.Codec())
			}
		}
	}
	return names
}

// topic returns the topic of a name, which is added if it is missing. The result is valid until the next call.
func (t *Topology) topic(name string) *TopologyTopic {
	i := slices.IndexFunc(t.Topics, func(of TopologyTopic) bool { return of.Name == name })
	if i < 0 {
		i, t.Topics = len(t.Topics), append(t.Topics, TopologyTopic{Name: name})
	}
	return &t.Topics[i]
}

func (of *TopologyTopic) specify(s topics.Spec) {
	if s.Name == "" { // the input of a graph without sources
		return
	}
	of.Record, of.Key, of.Cleanup, of.CoPartitioned = s.Record, s.Key, s.Cleanup, s.CoPartitioned
	of.RetentionMS, of.CompactionLagMS = s.Retention.Milliseconds(), s.CompactionLag.Milliseconds()
}

// importPath is the directory of a package in the name of a type argument.
var importPath = regexp.MustCompile(`[\w.\-~/]*/`)

func codecName(c goka.Codec) string {
	switch wrapped := c.(type) {
	case optionalCodec:
		c = wrapped.Codec
	case loopCodec:
		c = wrapped.Codec
	}
	return importPath.ReplaceAllString(fmt.Sprintf("%T", c), "")
}

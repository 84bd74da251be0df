package processors

import (
	"cmp"
	"maps"
	"regexp"
	"slices"
	"strings"

	"github.com/turntable-streams/turntable/topics"
)

// ACL allows operations on a Kafka resource.
type ACL struct {
	// Resource is topic, group, transactional-id or cluster, Name its name.
	Resource string `json:"resource"`
	Name     string `json:"name"`
	// Prefixed says that Name is what the names of the resources begin with.
	Prefixed bool `json:"prefixed"`
	// Operations are the names that kafka-acls.sh has for them.
	Operations []string `json:"operations"`
}

// ACLConfig configures Topology.ACLs.
type ACLConfig struct {
	// ExactlyOnce adds what groups with this guarantee need: their transactional IDs, and Describe on the cluster, to abort the
	// transactions of dead owners (default: AtLeastOnce).
	ExactlyOnce bool
	// CreateTopics adds what creating the topics needs (default: they exist when the groups start).
	CreateTopics bool
}

// ACLs returns what a process that runs all groups and programs of the topology needs, sorted, with one ACL for each resource. For a
// process that runs only some of them, describe those. The rights of your own readers and writers are not among it, and neither are
// those on the group of WithPredecessor and on other names of dead-letter topics.
func (t Topology) ACLs(c ACLConfig) []ACL {
	found := map[[2]string][]string{}
	allow := func(resource string, operations []string, names ...string) {
		for _, name := range names {
			if name != "" {
				found[[2]string{resource, name}] = append(found[[2]string{resource, name}], operations...)
			}
		}
	}
	read, write := []string{"Read", "Describe"}, []string{"Write", "Describe"}
	for _, g := range t.Groups {
		allow(resourceGroup, read, g.Group)
		allow(resourceTopic, read, slices.Concat(g.Inputs, g.Lookups, g.Joins, []string{g.Loop, g.Table})...)
		// The size of records that topics allow, and how long the table keeps tombstones, are read from their configuration.
		allow(resourceTopic, append([]string{"DescribeConfigs"}, write...), append(g.Outputs, g.DeadLetters, g.Loop, g.Table)...)
		if c.ExactlyOnce {
			allow(resourceTransactions, write, g.Group+"/")
			allow(resourceCluster, []string{"Describe"}, clusterName)
		}
	}
	for _, p := range t.Programs {
		// A worker configures its share group.
		allow(resourceGroup, append([]string{"AlterConfigs", "DescribeConfigs"}, read...), p.Group)
		allow(resourceTopic, read, p.Reads...)
		allow(resourceTopic, write, p.Writes...)
	}
	for _, of := range t.Topics {
		if len(t.Groups) > 0 { // a start checks the partitions of all topics
			allow(resourceTopic, []string{"Describe"}, of.Name)
		}
		if c.CreateTopics {
			allow(resourceTopic, []string{"Create", "Describe", "DescribeConfigs"}, of.Name)
		}
	}
	works := func(p topics.Program) bool { return p.Group != "" }
	if len(t.Groups) > 0 || slices.ContainsFunc(t.Programs, works) {
		allow(resourceTopic, []string{"Describe"}, t.Journal)
	}
	acls := []ACL{}
	for key, operations := range found {
		slices.Sort(operations)
		acls = append(acls, ACL{Resource: key[0], Name: key[1], Prefixed: key[0] == resourceTransactions, Operations: slices.Compact(operations)})
	}
	slices.SortFunc(acls, func(a, b ACL) int { return cmp.Or(cmp.Compare(a.Resource, b.Resource), cmp.Compare(a.Name, b.Name)) })
	return acls
}

const (
	resourceTopic        = "topic"
	resourceGroup        = "group"
	resourceTransactions = "transactional-id"
	resourceCluster      = "cluster"

	clusterName = "kafka-cluster"
)

// ACLCommands returns command lines of kafka-acls.sh that add ACLs for a principal, such as "User:support": one line for each set
// of operations on resources of one kind. Replace HOST:PORT, and add --command-config where the brokers authenticate clients.
func ACLCommands(principal string, acls []ACL) []string {
	lines := map[[2]string]string{} // by kind of resource and operations
	for _, a := range acls {
		key := [2]string{a.Resource, strings.Join(a.Operations, " --operation ")}
		if lines[key] == "" {
			lines[key] = "kafka-acls.sh --bootstrap-server HOST:PORT --add --allow-principal " + quoted(principal) + " --operation " + key[1]
			if a.Prefixed {
				lines[key] += " --resource-pattern-type prefixed"
			}
		}
		lines[key] += " --" + a.Resource
		if a.Resource != resourceCluster {
			lines[key] += " " + quoted(a.Name)
		}
	}
	keys := slices.SortedFunc(maps.Keys(lines), func(a, b [2]string) int { return slices.Compare(a[:], b[:]) })
	commands := make([]string, len(keys))
	for i, key := range keys {
		commands[i] = lines[key]
	}
	return commands
}

var unsafeInShell = regexp.MustCompile(`[^\w.:/=@%+-]`)

// quoted returns an argument for a POSIX shell.
func quoted(argument string) string {
	if argument != "" && !unsafeInShell.MatchString(argument) {
		return argument
	}
	return "'" + strings.ReplaceAll(argument, "'", `'\''`) + "'"
}

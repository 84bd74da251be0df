package topics_test

import (
	"context"
	"errors"
	"fmt"

	"github.com/IBM/sarama"
	"github.com/twmb/franz-go/pkg/kfake"

	"github.com/turntable-streams/turntable/codec"
	"github.com/turntable-streams/turntable/topics"
)

func ExampleFor() {
	catalog, err := topics.For("harbor")
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(catalog.MessageInput.Name())
	fmt.Println(catalog.Group(), catalog.Table(), catalog.DeadLetters())

	_, err = topics.For("harbor office")
	fmt.Println(err)
	// Output:
	// harbor-message-input
	// harbor-streams harbor-streams-table harbor-streams-dlq
	// topics: bad agent name: its character 7 is no letter, digit, dot, underscore or hyphen
}

func ExampleTopic_Codec() {
	catalog, err := topics.For("harbor")
	if err != nil {
		fmt.Println(err)
		return
	}
	in := catalog.ToolUseResult.Codec().Unmarshal([]byte(`{"tool_use_id":7,"result":"Berth N4","latency_ms":"212"}`))
	fmt.Println(*in.Value.ToolUseID, in.Value.LatencyMS, in.Value.Result)

	out, err := catalog.SessionControl.Codec().Marshal(topics.Control{Action: topics.ActionCancel})
	fmt.Println(string(out), err)

	poison := catalog.ToolUseResult.Codec().Unmarshal([]byte(`{"name":["berth_lookup"]}`))
	fmt.Println(poison.Err)
	// Output:
	// 7 212 {"result":"Berth N4"}
	// {"action":"cancel","request_id":null,"reason":null} <nil>
	// field name: topics: wrong type: got array, want string
}

func ExampleNew() {
	notes := topics.New(topics.Spec{
		Name: "notes", Record: "text", Key: topics.KeySession, Cleanup: topics.CleanupDelete,
	}, codec.String())
	fmt.Println(notes.Stream())
	// Output: notes
}

// What serves an agent with deliveries beside its groups.
func ExampleCatalog_Programs() {
	catalog, err := topics.For("harbor", topics.WithDeliveries())
	if err != nil {
		fmt.Println(err)
		return
	}
	for _, p := range catalog.Programs() {
		if p.Kind != topics.ProgramDoor {
			fmt.Println(p.Kind, p.Group, p.Reads, p.Writes)
		}
	}
	// Output:
	// worker harbor-think-consumer [harbor-enriched-message-input harbor-message-output harbor-think-request-response harbor-think-dlq] [harbor-think-request-response harbor-think-dlq]
	// worker harbor-tool-execution [harbor-tool-use harbor-message-output harbor-tool-use-result] [harbor-tool-use-result harbor-tool-use-dlq]
	// sender harbor-delivery-sink [harbor-deliveries] [harbor-delivery-receipts]
}

func ExamplePeerAuditHash() {
	record := topics.PeerAudit{
		Version: topics.PeerAuditVersion, Event: topics.PeerSent, TaskID: "t-9", InstanceID: "hq-1", Seq: 1,
		PeerID: "tenant-a", ContentLength: 12,
	}
	record.Hash = topics.PeerAuditHash(record)
	fmt.Println(record.Hash[:16], topics.PeerAuditHash(record) == record.Hash)
	record.ContentLength++
	fmt.Println(topics.PeerAuditHash(record) == record.Hash)
	// Output:
	// a5911ff2072fe7a0 true
	// false
}

func ExampleEnsure() {
	// A broker in the process stands in for a cluster, where somebody made a topic with four partitions.
	broker, err := kfake.NewCluster(kfake.NumBrokers(1), kfake.SeedTopics(4, "harbor-message-input"))
	if err != nil {
		fmt.Println(err)
		return
	}
	defer broker.Close()
	config := sarama.NewConfig()
	config.Version = sarama.V3_6_0_0
	admin, err := sarama.NewClusterAdmin(broker.ListenAddrs(), config)
	if err != nil {
		fmt.Println(err)
		return
	}
	defer func() { _ = admin.Close() }()

	catalog, err := topics.For("harbor")
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(topics.Ensure(context.Background(), admin, catalog))
	made, err := admin.DescribeTopics([]string{catalog.Table()})
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(made[0].Name, len(made[0].Partitions))

	err = topics.Ensure(context.Background(), admin, catalog, topics.WithPartitions(8))
	fmt.Println(errors.Is(err, topics.ErrPartitions))
	// Output:
	// <nil>
	// harbor-streams-table 4
	// true
}

func ExampleSplice() {
	previous := topics.Raw(`[{"role":"user"},null]`)
	input := topics.Raw(`{"role":"user","content":1.10}`)
	response := topics.Raw(`[{"role":"assistant"}]`)
	fmt.Println(topics.Splice(previous, input, response))
	// Output: [{"role":"user"},{"role":"user","content":1.10},{"role":"assistant"}]
}

func ExampleElements() {
	elements, err := topics.Elements(topics.Raw(`[{"role":"user"}, null, "text"]`))
	for _, e := range elements {
		fmt.Println(e)
	}
	fmt.Println(err)
	// Output:
	// {"role":"user"}
	// null
	// "text"
	// <nil>
}

func ExampleMessages() {
	response := topics.Raw(`[{"role":"user","content":"Hi"},null,{"role":"assistant","content":5}]`)
	for m, err := range topics.Messages(response) {
		if err != nil {
			fmt.Println(err)
			return
		}
		fmt.Println(*m.Role, topics.Text(m.Content))
	}
	// Output:
	// user Hi
	// assistant 5
}

func ExampleText() {
	fmt.Println(topics.Text(topics.Raw(`[{"type":"text","text":"Let me look."},{"type":"tool_use","id":"tu_1"}]`)))
	// Output: Let me look.
}

func ExampleLookup() {
	value, ok := topics.Lookup(topics.Raw(`{"agent":"pilot","request_id":null}`), "request_id")
	fmt.Println(value, ok)
	// Output: null true
}

func ExampleDigestOf() {
	sent, _ := topics.DecodeMessage(topics.Raw(`{"role":"user","content":{"berth":"N4","hours":1.10},"timestamp":"t"}`))
	echo, _ := topics.DecodeMessage(topics.Raw(`{"timestamp":"t","role":"user","content":{"hours":1.1,"berth":"N4"}}`))
	fmt.Println(topics.DigestOf(sent) == topics.DigestOf(echo))
	// Output: true
}

func ExampleEqual() {
	fmt.Println(topics.Equal(topics.Raw(`{"a":1e2,"b":"\u00e9"}`), topics.Raw(`{ "b": "é", "a": 100.0 }`)))
	// Output: true
}

func ExampleSchemas() {
	schema := topics.Schemas()["session-control"]
	required, _ := topics.Lookup(schema, "required")
	properties, _ := topics.Lookup(schema, "properties")
	action, _ := topics.Lookup(properties, "action")
	actions, _ := topics.Lookup(action, "enum")
	fmt.Println(required, actions)
	// Output: ["action"] ["cancel", "purge", "end"]
}

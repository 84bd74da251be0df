package topics_test

import (
	"context"
	"errors"
	"fmt"
	"os"

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

func ExampleDescribe() {
	catalog, err := topics.For("harbor")
	if err != nil {
		fmt.Println(err)
		return
	}
	if err := topics.Describe(os.Stdout, catalog); err != nil {
		fmt.Println(err)
	}
	// Output:
	// TOPIC                              VALUE              KEY          CLEANUP         RETENTION       CREATED
	// harbor-message-input               Message            session_id   delete          broker default  yes, co-partitioned
	// harbor-enriched-message-input      EnrichedMessage    session_id   delete          broker default  yes, co-partitioned
	// harbor-think-request-response      ThinkResponse      session_id   delete          broker default  yes, co-partitioned
	// harbor-think-dlq                   ThinkFailure       session_id   delete          broker default  yes
	// harbor-tool-use                    ToolUseItem        session_id   delete          broker default  yes, co-partitioned
	// harbor-tool-use-dlq                ToolUseItem        session_id   delete          broker default  yes, co-partitioned
	// harbor-tool-use-result             ToolUseResult      session_id   delete          broker default  yes, co-partitioned
	// harbor-tool-use-all-complete       ToolResults        session_id   delete          broker default  yes, co-partitioned
	// harbor-tool-use-latency            ToolLatency        tool_name    delete          broker default  yes
	// harbor-message-output              Output             session_id   delete          broker default  yes, co-partitioned
	// harbor-reply-to                    Route              session_id   compact,delete  1d              yes, co-partitioned
	// harbor-session-control             Control            session_id   delete          broker default  yes, co-partitioned
	// harbor-streams-dlq                 raw                source key   delete          broker default  yes
	// harbor-streams-loop                raw                session_id   delete          as inputs       yes, co-partitioned
	// harbor-streams-table               session row        session_id   compact         unlimited       yes, co-partitioned
	// harbor-compaction-request          CompactionRequest  session_id   delete          broker default  no
	// harbor-compaction-result           CompactionResult   session_id   delete          broker default  no
	// harbor-deliveries                  Delivery           session_id   delete          broker default  no
	// harbor-delivery-receipts           Receipt            session_id   delete          broker default  no
	// harbor-delivery-dlq                DeadDelivery       session_id   delete          broker default  no
	// harbor-delivery-control            DeliveryControl    session_id   delete          broker default  no
	// harbor-delivery-streams-dlq        raw                source key   delete          broker default  no
	// harbor-delivery-streams-loop       raw                session_id   delete          broker default  no
	// harbor-delivery-streams-table      delivery row       session_id   compact         unlimited       no
	// harbor-delivery-routes-dlq         raw                source key   delete          broker default  no
	// harbor-delivery-routes-loop        raw                route        delete          broker default  no
	// harbor-delivery-routes-table       route row          route        compact         unlimited       no
	// harbor-agent-events                AgentEvent         session_id   delete          broker default  no
	// harbor-batch-messages              BatchMessage       session_id   delete          broker default  no
	// harbor-fold-streams-dlq            raw                source key   delete          broker default  no
	// harbor-fold-streams-loop           raw                session_id   delete          broker default  no
	// harbor-fold-streams-table          fold row           session_id   compact         unlimited       no
	// harbor-gate-requests               GateRequest        session_id   delete          broker default  no
	// harbor-gate-decisions              GateDecision       session_id   delete          broker default  no
	// harbor-gate-outcomes               GateOutcome        session_id   delete          broker default  no
	// harbor-gate-grants                 GateGrant          agent        delete          broker default  no
	// harbor-gate-streams-dlq            raw                source key   delete          broker default  no
	// harbor-gate-streams-loop           raw                session_id   delete          broker default  no
	// harbor-gate-streams-table          gate row           session_id   compact         unlimited       no
	// harbor-gate-grant-streams-dlq      raw                source key   delete          broker default  no
	// harbor-gate-grant-streams-loop     raw                agent        delete          broker default  no
	// harbor-gate-grant-streams-table    grant row          agent        compact         unlimited       no
	// harbor-peer-commands               PeerCommand        session_id   delete          broker default  no
	// harbor-peer-replies                PeerReply          session_id   delete          broker default  no
	// harbor-peer-attempts               Delivery           session_id   delete          broker default  no
	// harbor-peer-receipts               Receipt            session_id   delete          broker default  no
	// harbor-peer-callbacks              Output             session_id   delete          broker default  no
	// harbor-peer-events                 PeerAudit          instance_id  delete          broker default  no
	// harbor-peer-audit                  PeerAudit          task_id      delete          broker default  no
	// harbor-peer-tasks-dlq              raw                source key   delete          broker default  no
	// harbor-peer-tasks-loop             raw                session_id   delete          broker default  no
	// harbor-peer-tasks-table            peer row           session_id   compact         unlimited       no
	// harbor-peer-chain-dlq              raw                source key   delete          broker default  no
	// harbor-peer-chain-loop             raw                instance_id  delete          broker default  no
	// harbor-peer-chain-table            chain row          instance_id  compact         unlimited       no
	// harbor-delegation-replies          DelegationReply    session_id   delete          broker default  no
	// harbor-delegation-status           Delegation         session_id   delete          broker default  no
	// harbor-channel-messages            Output             session_id   delete          broker default  no
	// harbor-delegations-dlq             raw                source key   delete          broker default  no
	// harbor-delegations-loop            raw                session_id   delete          broker default  no
	// harbor-delegations-table           delegations row    session_id   compact         unlimited       no
	// harbor-session-end                 SessionEnd         session_id   delete          broker default  no
	// harbor-memoir-sessions             MemoirSnapshot     user_id      delete          broker default  no
	// harbor-memoir-lookups              EnrichedMessage    user_id      delete          broker default  no
	// harbor-memoir-context-session-end  MemoirSnapshot     user_id      delete          broker default  no
	// harbor-memoir-context              string             user_id      compact         unlimited       no
	// harbor-memoir-dlq                  MemoirSnapshot     user_id      delete          broker default  no
	// harbor-memories-dlq                raw                source key   delete          broker default  no
	// harbor-memories-loop               raw                user_id      delete          broker default  no
	// harbor-memories-table              memory row         user_id      compact         unlimited       no
	// harbor-model-costs                 ModelCost          session_id   delete          broker default  no
	// harbor-session-cost                SessionCost        session_id   compact         unlimited       no
	// harbor-scope-costs                 ModelCost          scope        delete          broker default  no
	// harbor-spending                    Spending           scope        compact         unlimited       no
	// harbor-session-costs-dlq           raw                source key   delete          broker default  no
	// harbor-session-costs-loop          raw                session_id   delete          broker default  no
	// harbor-session-costs-table         cost row           session_id   compact         unlimited       no
	// harbor-spending-totals-dlq         raw                source key   delete          broker default  no
	// harbor-spending-totals-loop        raw                scope        delete          broker default  no
	// harbor-spending-totals-table       spending row       scope        compact         unlimited       no
	// harbor-latencies-dlq               raw                source key   delete          broker default  no
	// harbor-latencies-loop              raw                tool_name    delete          broker default  no
	// harbor-latencies-table             latency row        tool_name    compact         unlimited       no
	// harbor-crew-agent-inputs           CrewInput          agent        delete          broker default  no
	// harbor-crew-inputs                 CrewInput          crew_id      delete          broker default  no
	// harbor-crew-repository-inputs      CrewInput          repository   delete          broker default  no
	// harbor-crew-actions                CrewAction         subject      delete          broker default  no
	// harbor-crew-events                 CrewEvent          subject      delete          broker default  no
	// harbor-crew-agents-dlq             raw                source key   delete          broker default  no
	// harbor-crew-agents-loop            raw                agent        delete          broker default  no
	// harbor-crew-agents-table           crew agent row     agent        compact         unlimited       no
	// harbor-crews-dlq                   raw                source key   delete          broker default  no
	// harbor-crews-loop                  raw                crew_id      delete          broker default  no
	// harbor-crews-table                 crew row           crew_id      compact         unlimited       no
	// harbor-crew-repositories-dlq       raw                source key   delete          broker default  no
	// harbor-crew-repositories-loop      raw                repository   delete          broker default  no
	// harbor-crew-repositories-table     repository row     repository   compact         unlimited       no
	// harbor-session-context             Raw                session_id   delete          broker default  no
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

package peer_test

import (
	"fmt"

	"github.com/turntable-streams/turntable/processors/peer"
	"github.com/turntable-streams/turntable/topics"
)

// An instance that appends a record stores the new head. A record that is removed later is noticed.
func ExampleVerify() {
	head := peer.Head{InstanceID: "hq-1"}
	var records []topics.PeerAudit
	for _, event := range []topics.PeerEvent{topics.PeerSent, topics.PeerAcknowledged, topics.PeerSent} {
		var record topics.PeerAudit
		record, head = head.Append(topics.PeerAudit{Event: event, TaskID: "t-9", PeerID: "tenant-a"})
		records = append(records, record)
	}
	fmt.Println(peer.Verify(peer.Chain{Records: records, Head: head}))
	for _, finding := range peer.Verify(peer.Chain{Records: records[:2], Head: head}) {
		fmt.Println(finding)
	}
	// Output:
	// []
	// missing: instance "hq-1", record 3: record 3 is not there
}

// A topic has the records by task. Sorted puts them into the order of the chain.
func ExampleSorted() {
	head := peer.Head{InstanceID: "hq-1"}
	first, head := head.Append(topics.PeerAudit{Event: topics.PeerSent, TaskID: "t-9"})
	second, _ := head.Append(topics.PeerAudit{Event: topics.PeerSent, TaskID: "t-3"})
	for _, r := range peer.Sorted("hq-1", []topics.PeerAudit{second, first, second}) {
		fmt.Println(r.Seq, r.TaskID)
	}
	// Output:
	// 1 t-9
	// 2 t-3
}

func ExampleHead_Append() {
	record, head := peer.Head{InstanceID: "hq-1"}.Append(topics.PeerAudit{
		Event: topics.PeerSent, TaskID: "t-9", PeerID: "tenant-a", ContentLength: 12,
	})
	fmt.Println(record.Seq, head.Seq, record.Hash == head.Hash)
	next, _ := head.Append(topics.PeerAudit{Event: topics.PeerAcknowledged, TaskID: "t-9"})
	fmt.Println(next.Seq, next.PrevHash == record.Hash)
	// Output:
	// 1 1 true
	// 2 true
}

// The dispatcher states that a task succeeded; the receiver has rejected it.
func ExampleStitch() {
	chain := func(instance string, records ...topics.PeerAudit) peer.Chain {
		head := peer.Head{InstanceID: instance}
		for i, r := range records {
			records[i], head = head.Append(r)
		}
		return peer.Chain{Records: records, Head: head}
	}
	hq := peer.Half{PeerID: "tenant-a", Chain: chain("hq-1",
		topics.PeerAudit{Event: topics.PeerSent, TaskID: "t-9", PeerID: "tenant-a", ContentLength: 12},
		topics.PeerAudit{Event: topics.PeerAcknowledged, TaskID: "t-9", PeerID: "tenant-a", Status: "success"},
		topics.PeerAudit{Event: topics.PeerSent, TaskID: "t-10", PeerID: "tenant-b"}, // another peer
	)}
	tenant := peer.Half{InboundID: "hq", Chain: chain("tenant-a-1",
		topics.PeerAudit{Event: topics.PeerReceived, TaskID: "t-9", InboundID: "hq", ContentLength: 12},
		topics.PeerAudit{Event: topics.PeerCompleted, TaskID: "t-9", InboundID: "hq", Status: "rejected", PendingApproval: true},
	)}
	for _, finding := range peer.Stitch(hq, tenant) {
		fmt.Println(finding)
	}
	// Output:
	// contradiction: instance "hq-1", record 2, task "t-9", peer.delegate.acknowledged: status: "success" of the dispatcher, "rejected" of the receiver
}

// The chain of an instance, from its events.
func ExampleChainGraph() {
	graph, err := peer.ChainGraph("harbor")
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(graph.Group())
	for _, in := range graph.InputStreams() {
		fmt.Println("reads", in.Topic())
	}
	for _, out := range graph.OutputStreams() {
		fmt.Println("writes", out.Topic())
	}
	// Unordered output:
	// harbor-peer-chain
	// reads harbor-peer-events
	// writes harbor-peer-audit
	// writes harbor-peer-chain-dlq
}

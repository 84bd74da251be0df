package processors_test

import (
	"encoding/json"
	"fmt"
	"log"

	"github.com/lovoo/goka"

	"github.com/turntable-streams/turntable/codec"
	"github.com/turntable-streams/turntable/processors"
	"github.com/turntable-streams/turntable/topics"
)

// words counts the words of lines, and looks up the language of a key in a table of another group.
func words() *goka.GroupGraph {
	lines := topics.New(topics.Spec{Name: "lines", Record: "text", Cleanup: topics.CleanupDelete}, codec.String())
	edges := processors.Edges("words", processors.Input(lines, func(*processors.Context, codec.Decoded[string]) error { return nil }))
	return goka.DefineGroup("words", append(edges, goka.Persist(codec.JSON[int]()), goka.Output("counts", codec.JSON[int]()),
		goka.Lookup("languages-table", codec.String()))...)
}

func ExampleDescribe() {
	raw, err := json.MarshalIndent(processors.Describe(words()), "", " ")
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(string(raw))
	// Output:
	// {
	//  "groups": [
	//   {
	//    "group": "words",
	//    "inputs": [
	//     "lines"
	//    ],
	//    "loop": "words-loop",
	//    "table": "words-table",
	//    "deadlines": false,
	//    "lookups": [
	//     "languages-table"
	//    ],
	//    "joins": [],
	//    "outputs": [
	//     "counts"
	//    ],
	//    "dead_letters": "words-dlq",
	//    "co_partitioned": [
	//     "lines",
	//     "words-loop",
	//     "words-table"
	//    ]
	//   }
	//  ],
	//  "programs": [],
	//  "topics": [
	//   {
	//    "name": "languages-table",
	//    "codec": "codec.Codec[string]",
	//    "cleanup": "compact",
	//    "co_partitioned": false
	//   },
	//   {
	//    "name": "lines",
	//    "record": "text",
	//    "codec": "codec.Codec[string]",
	//    "cleanup": "delete",
	//    "co_partitioned": true
	//   },
	//   {
	//    "name": "words-loop",
	//    "codec": "codec.Codec[[]uint8]",
	//    "cleanup": "delete",
	//    "co_partitioned": true
	//   },
	//   {
	//    "name": "words-table",
	//    "codec": "codec.Codec[int]",
	//    "cleanup": "compact",
	//    "co_partitioned": true
	//   },
	//   {
	//    "name": "words-dlq",
	//    "codec": "codec.Codec[[]uint8]",
	//    "cleanup": "delete",
	//    "co_partitioned": false
	//   },
	//   {
	//    "name": "counts",
	//    "codec": "codec.Codec[int]",
	//    "co_partitioned": false
	//   }
	//  ]
	// }
}

// The description shows as a diagram on a page that renders Mermaid.
func ExampleTopology_Mermaid() {
	fmt.Print(processors.Describe(words()).Mermaid())
	// Output:
	// flowchart LR
	//     n0["group words"]
	//     n1(["lines"])
	//     n1 --> n0
	//     n2(["counts"])
	//     n0 --> n2
	//     n3[("languages-table")]
	//     n3 -.-> n0
	//     n4[("words-table")]
	//     n0 <--> n4
	//     n5(["words-loop"])
	//     n0 <-.-> n5
}

// An administrator gives a process the rights that its groups need.
func ExampleTopology_ACLs() {
	acls := processors.Describe(words()).ACLs(processors.ACLConfig{ExactlyOnce: true})
	for _, command := range processors.ACLCommands("User:CN=words service", acls) {
		fmt.Println(command)
	}
	// Output:
	// kafka-acls.sh --bootstrap-server HOST:PORT --add --allow-principal 'User:CN=words service' --operation Describe --cluster
	// kafka-acls.sh --bootstrap-server HOST:PORT --add --allow-principal 'User:CN=words service' --operation Describe --operation Read --group words
	// kafka-acls.sh --bootstrap-server HOST:PORT --add --allow-principal 'User:CN=words service' --operation Describe --operation DescribeConfigs --operation Read --operation Write --topic words-loop --topic words-table
	// kafka-acls.sh --bootstrap-server HOST:PORT --add --allow-principal 'User:CN=words service' --operation Describe --operation DescribeConfigs --operation Write --topic counts --topic words-dlq
	// kafka-acls.sh --bootstrap-server HOST:PORT --add --allow-principal 'User:CN=words service' --operation Describe --operation Read --topic languages-table --topic lines
	// kafka-acls.sh --bootstrap-server HOST:PORT --add --allow-principal 'User:CN=words service' --operation Describe --operation Write --resource-pattern-type prefixed --transactional-id words/
}

// The programs that serve an agent, and one of your own that reads its answers.
func ExampleTopology_WithCatalog() {
	catalog, err := topics.For("support", topics.WithDeliveries())
	if err != nil {
		log.Fatal(err)
	}
	reports := topics.Program{Name: "reports", Kind: "reader", Reads: []string{catalog.MessageOutput.Name()}}
	t := processors.Describe().WithCatalog(catalog, append(catalog.Programs(), reports)...)
	for _, p := range t.Programs {
		fmt.Printf("%s %q in group %q\n", p.Kind, p.Name, p.Group)
	}
	// Output:
	// worker "model worker" in group "support-think-consumer"
	// worker "tool worker" in group "support-tool-execution"
	// sender "delivery sink" in group "support-delivery-sink"
	// door "turnhttp" in group ""
	// door "websocket" in group ""
	// reader "reports" in group ""
}

package codec_test

import (
	"errors"
	"fmt"
	"strings"

	"github.com/go-json-experiment/json"
	"github.com/lovoo/goka"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/dynamicpb"
	"google.golang.org/protobuf/types/known/durationpb"

	"github.com/turntable-streams/turntable/codec"
)

type city struct {
	Name   string `json:"name"`
	People int64  `json:"people"`
}

// A codec is a goka.Codec whose Decode never fails.
func Example() {
	cities := codec.JSON[city]()
	graph := goka.DefineGroup("census",
		goka.Input("cities", cities, func(ctx goka.Context, msg any) {
			switch in := msg.(codec.Decoded[city]); {
			case in.Tombstone():
				ctx.Delete()
			case in.Err != nil:
				ctx.Emit("census-dlq", ctx.Key(), in.Raw)
			default:
				ctx.SetValue(in.Value)
			}
		}),
		goka.Output("census-dlq", codec.Bytes()),
		goka.Persist(cities),
	)
	fmt.Println(graph.Group(), len(graph.InputStreams()), len(graph.OutputStreams()))
	// Output: census 1 1
}

func ExampleJSON() {
	cities := codec.JSON[city]()
	raw, err := cities.Marshal(city{Name: "Kraków", People: 806201})
	fmt.Println(string(raw), err)
	fmt.Printf("%+v\n", cities.Unmarshal([]byte(`{"name":"Kraków","founded":990} and more text`)).Value)
	fmt.Println(cities.Unmarshal([]byte(`{"name":"Kraków","people":"many"}`)).Err)
	// Output:
	// {"name":"Kraków","people":806201} <nil>
	// {Name:Kraków People:0}
	// codec: value does not fit: JSON string, Go int64, byte 27
}

func ExampleDecoded() {
	cities := codec.JSON[city]()
	for _, raw := range [][]byte{[]byte(`{"name":"Łódź"}`), nil, {}} {
		switch in := cities.Unmarshal(raw); {
		case in.Tombstone():
			fmt.Println("tombstone")
		case in.Err != nil:
			fmt.Println("poison:", in.Err)
		default:
			fmt.Println("value:", in.Value.Name)
		}
	}
	// Output:
	// value: Łódź
	// tombstone
	// poison: codec: empty value
}

func ExampleProto() {
	durations := codec.Proto[*durationpb.Duration]()
	raw, err := durations.Marshal(&durationpb.Duration{Seconds: 90})
	fmt.Println(raw, err)
	fmt.Println(durations.Unmarshal(raw).Value.AsDuration())
	fmt.Println(durations.Unmarshal([]byte{}).Value.AsDuration())
	fmt.Println(durations.Unmarshal([]byte("90 seconds")).Err)
	// Output:
	// [8 90] <nil>
	// 1m30s
	// 0s
	// codec: malformed value: decode google.protobuf.Duration
}

func ExampleProtoLike() {
	// The descriptor may come from a schema that is read at run time.
	durations := codec.ProtoLike(dynamicpb.NewMessage((&durationpb.Duration{}).ProtoReflect().Descriptor()))
	in := durations.Unmarshal([]byte{8, 90})
	fmt.Println(in.Value.Descriptor().FullName(), proto.Size(in.Value), in.Err)
	// Output: google.protobuf.Duration 2 <nil>
}

func ExampleBytes() {
	in := codec.Bytes().Unmarshal([]byte{0xff})
	fmt.Println(in.Value, in.Err)
	// Output: [255] <nil>
}

func ExampleString() {
	in := codec.String().Unmarshal([]byte{})
	fmt.Printf("%q %t\n", in.Value, in.Tombstone())
	// Output: "" false
}

// upper is a user's format: text in upper case.
type upper struct{}

var errNotUpper = errors.New("upper: has lower-case letters")

func (upper) Marshal(v string) ([]byte, error) { return []byte(strings.ToUpper(v)), nil }

func (upper) Unmarshal(raw []byte) (string, error) {
	if text := string(raw); text == strings.ToUpper(text) {
		return text, nil
	}
	return "", errNotUpper
}

func ExampleOf() {
	shouts := codec.Of[string](upper{})
	raw, err := shouts.Encode("hello")
	fmt.Println(string(raw), err)
	fmt.Println(shouts.Unmarshal([]byte("hello")).Err)
	_, err = shouts.Encode(5)
	fmt.Println(err)
	// Output:
	// HELLO <nil>
	// upper: has lower-case letters
	// codec: wrong type: got int, want string
}

func ExampleJSONCause() {
	var ages map[string]int
	err := json.Unmarshal([]byte(`{"Ada":"thirty-six"}`), &ages)
	fmt.Println(codec.JSONCause(err))
	// Output: codec: value does not fit: JSON string, Go int, byte 7
}

func ExampleCheckDepth() {
	fmt.Println(codec.CheckDepth([]byte(strings.Repeat("[", codec.MaxDepth+1))))
	// Output: codec: value nested too deep
}

// A key has the same partition as with producers of other languages.
func ExampleKeyHasher() {
	_ = goka.WithHasher(codec.KeyHasher()) // for goka.NewProcessor

	h := codec.KeyHasher()()
	_, _ = h.Write([]byte("session-1"))
	fmt.Println(int32(h.Sum32())%12 == codec.PartitionOf("session-1", 12))
	// Output: true
}

func ExamplePartitionOf() {
	fmt.Println(codec.PartitionOf("foobar", 12), codec.PartitionOf("foobar\x001", 12))
	// Output: 6 6
}

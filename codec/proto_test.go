package codec_test

import (
	"math"
	"testing"

	//lint:ignore SA1019 the codec takes messages of the old API, so its tests have some
	oldproto "github.com/golang/protobuf/proto"
	"github.com/stretchr/testify/require"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/descriptorpb"
	"google.golang.org/protobuf/types/dynamicpb"
	"google.golang.org/protobuf/types/known/durationpb"
	"google.golang.org/protobuf/types/known/structpb"
	"google.golang.org/protobuf/types/known/timestamppb"
	"google.golang.org/protobuf/types/known/typepb"

	"github.com/turntable-streams/turntable/codec"
	"github.com/turntable-streams/turntable/codec/codectest"
)

// oldOrder is what the generator for the old github.com/golang/protobuf API wrote: no ProtoReflect, all in struct tags.
type oldOrder struct {
	Id                   *string              `protobuf:"bytes,1,opt,name=id" json:"id,omitempty"`
	Count                *int64               `protobuf:"varint,2,opt,name=count" json:"count,omitempty"`
	Items                []*oldItem           `protobuf:"bytes,3,rep,name=items" json:"items,omitempty"`
	Rates                map[string]float64   `protobuf:"bytes,4,rep,name=rates" json:"rates,omitempty" protobuf_key:"bytes,1,opt,name=key" protobuf_val:"fixed64,2,opt,name=value"`
	Due                  *durationpb.Duration `protobuf:"bytes,5,opt,name=due" json:"due,omitempty"`
	XXX_NoUnkeyedLiteral struct{}             `json:"-"`
	XXX_unrecognized     []byte               `json:"-"`
	XXX_sizecache        int32                `json:"-"`
}

func (m *oldOrder) Reset()         { *m = oldOrder{} }
func (m *oldOrder) String() string { return oldproto.CompactTextString(m) }
func (*oldOrder) ProtoMessage()    {}

type oldItem struct {
	Name                 *string  `protobuf:"bytes,1,opt,name=name" json:"name,omitempty"`
	XXX_NoUnkeyedLiteral struct{} `json:"-"`
	XXX_unrecognized     []byte   `json:"-"`
	XXX_sizecache        int32    `json:"-"`
}

func (m *oldItem) Reset()         { *m = oldItem{} }
func (m *oldItem) String() string { return oldproto.CompactTextString(m) }
func (*oldItem) ProtoMessage()    {}

func oldOrders() []*oldOrder {
	return []*oldOrder{
		{Id: proto.String("")},
		{
			Id: proto.String("o-1"), Count: proto.Int64(-1), Items: []*oldItem{{Name: proto.String("pen")}, {}},
			Rates: map[string]float64{"b": 2, "a": 1, "c": math.Inf(1)}, Due: &durationpb.Duration{Seconds: 7},
		},
	}
}

func values(t testing.TB) []*structpb.Value {
	t.Helper()
	full, err := structpb.NewValue(map[string]any{"name": "text", "list": []any{1.5, nil, true, map[string]any{"a": ""}}})
	require.NoError(t, err)
	return []*structpb.Value{{}, structpb.NewStringValue("text"), full}
}

func TestProtoPassesTheCodecSuite(t *testing.T) {
	t.Run("new API", func(t *testing.T) { codectest.Run(t, codec.Proto[*structpb.Value](), values(t)...) })
	t.Run("old API", func(t *testing.T) { codectest.Run(t, codec.Proto[*oldOrder](), oldOrders()...) })
	t.Run("dynamic", func(t *testing.T) {
		empty := dynamicpb.NewMessage((&timestamppb.Timestamp{}).ProtoReflect().Descriptor())
		set := dynamicpb.NewMessage(empty.Descriptor())
		require.NoError(t, proto.Unmarshal([]byte{8, 7}, set))
		codectest.Run(t, codec.ProtoLike(empty), empty, set)
	})
	codectest.Copies(t, codec.Proto[*structpb.Value](), values(t)...)
	codectest.Copies(t, codec.Proto[*oldOrder](), oldOrders()...)
}

func TestZeroLengthDecodesToAnEmptyMessage(t *testing.T) {
	d := codec.Proto[*timestamppb.Timestamp]().Unmarshal([]byte{})
	require.NoError(t, d.Err)
	require.False(t, d.Tombstone())
	require.True(t, proto.Equal(&timestamppb.Timestamp{}, d.Value))
	raw, err := codec.Proto[*timestamppb.Timestamp]().Encode(d)
	require.NoError(t, err)
	require.Equal(t, []byte{}, raw)
}

func TestGolangProtobufMessageHasTheSameBytes(t *testing.T) {
	m := &oldOrder{Id: proto.String("o-1"), Items: []*oldItem{{Name: proto.String("pen")}}}
	want, err := oldproto.Marshal(m)
	require.NoError(t, err)
	raw, err := codec.Proto[*oldOrder]().Marshal(m)
	require.NoError(t, err)
	require.Equal(t, want, raw)
}

func TestUnknownFieldsSurvive(t *testing.T) {
	raw, err := proto.Marshal(&typepb.Field{Number: 7, Name: "late", JsonName: "late"})
	require.NoError(t, err)
	narrow := codec.Proto[*timestamppb.Timestamp]()
	d := narrow.Unmarshal(raw)
	require.NoError(t, d.Err)
	again, err := narrow.Marshal(d.Value)
	require.NoError(t, err)
	var field typepb.Field
	require.NoError(t, proto.Unmarshal(again, &field))
	require.Equal(t, "late", field.GetJsonName())
}

func TestNilMessageIsAnErrorAndNotATombstone(t *testing.T) {
	_, err := codec.Proto[*timestamppb.Timestamp]().Marshal(nil)
	require.ErrorIs(t, err, codec.ErrType)
	_, err = codec.Proto[*oldOrder]().Encode((*oldOrder)(nil))
	require.ErrorIs(t, err, codec.ErrType)
}

func TestOtherMessageTypeIsAnError(t *testing.T) {
	c := codec.ProtoLike(dynamicpb.NewMessage((&timestamppb.Timestamp{}).ProtoReflect().Descriptor()))
	_, err := c.Marshal(dynamicpb.NewMessage((&durationpb.Duration{}).ProtoReflect().Descriptor()))
	require.EqualError(t, err, "codec: wrong type: got google.protobuf.Duration, want google.protobuf.Timestamp")
}

func TestMissingRequiredFieldIsPoisonAndError(t *testing.T) {
	c := codec.Proto[*descriptorpb.UninterpretedOption_NamePart]()
	require.ErrorIs(t, c.Unmarshal([]byte{}).Err, codec.ErrMalformed)
	_, err := c.Marshal(&descriptorpb.UninterpretedOption_NamePart{})
	require.ErrorIs(t, err, codec.ErrMismatch)
}

func TestProtoPanicsWithoutAMessageType(t *testing.T) {
	require.PanicsWithValue(t, "codec: Proto of protoiface.MessageV1: want a pointer to a generated message",
		func() { codec.Proto[oldproto.Message]() })
	require.PanicsWithValue(t, "codec: *dynamicpb.Message has no message type",
		func() { codec.Proto[*dynamicpb.Message]() })
}

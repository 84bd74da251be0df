package topics

import (
	"testing"

	"github.com/stretchr/testify/require"
)

func TestWithoutMembersDropsTheNamedMembersOnly(t *testing.T) {
	for in, want := range map[string]string{
		`{"request_id":"r","turntable_origin":{"a":[1]},"x":1.10}`:   `{"request_id":"r","x":1.10}`,
		`{"turntable_\u006frigin":1,"turntable_origin":2}`:           `{}`,
		`{"turn\u0074able_new":null, "a" : {"turntable_origin":1} }`: `{"a":{"turntable_origin":1}}`,
		` {"a" : 1.10 } `: ` {"a" : 1.10 } `,
		`{}`:              `{}`,
		`["turntable_a"]`: `["turntable_a"]`,
		`5`:               `5`,
	} {
		require.Equal(t, want, string(WithoutMembers(Raw(in), Reserved)), in)
	}
	require.Nil(t, WithoutMembers(nil, Reserved))
	for _, name := range []string{MetaOrigin, MetaPrompt, MetaTask, MetaResult} {
		require.True(t, Reserved(name))
		_, found := Lookup(WithoutMembers(Raw(`{"`+name+`":1,"`+name+`":2}`), Reserved), name)
		require.False(t, found)
	}
	require.False(t, Reserved("request_id"))
}

func TestWithoutChannelRemovesWhereAnOutputGoes(t *testing.T) {
	for in, want := range map[string]string{
		`{"callbackService":"s","origin":{"channel":"c"},"delegation":{},"x":{"origin":1}}`: `{"callbackService":"s","x":{"origin":1}}`,
		`{"\u006frigin":{"channel":"c"},"origin":1}`:                                        `{}`,
		`{"callbackService" : "s"}`:                                                         `{"callbackService" : "s"}`,
	} {
		got := WithoutChannel(Raw(in))
		require.Equal(t, want, string(got))
		require.Nil(t, OriginOf(got))
		require.Nil(t, DelegationOf(got))
	}
}

package platform

import (
	"net/http"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestEqual(t *testing.T) {
	require.True(t, EqualSecret("s3cret", "s3cret"))
	for _, pair := range [][2]string{{"", ""}, {"s3cret", ""}, {"", "s3cret"}, {"s3cre", "s3cret"}, {"S3cret", "s3cret"}} {
		require.False(t, EqualSecret(pair[0], pair[1]), pair)
	}
}

func TestBearerWantsOneHeader(t *testing.T) {
	token, ok := BearerToken(http.Header{"Authorization": {"bearer abc"}})
	require.True(t, ok)
	require.Equal(t, "abc", token)
	for _, values := range [][]string{nil, {"abc"}, {"Basic abc"}, {"Bearer "}, {"Bearer a", "Bearer b"}} {
		_, ok := BearerToken(http.Header{"Authorization": values})
		require.False(t, ok, values)
	}
}

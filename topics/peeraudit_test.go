package topics

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestPeerAuditHashIsThatOfTheRecordWithoutItsHash(t *testing.T) {
	for _, record := range records(t, "peer-audit") {
		r := good(t, harbor(t).PeerAudit.Codec(), string(record))
		require.Equal(t, r.Hash, PeerAuditHash(r))

		// What a program in another language does.
		at := bytes.LastIndex(record, []byte(`,"hash":"`))
		require.Equal(t, len(record)-len(`,"hash":""}`)-2*sha256.Size, at, "the hash is the last member")
		sum := sha256.Sum256(append(bytes.Clone(record[:at]), '}'))
		require.Equal(t, r.Hash, hex.EncodeToString(sum[:]))
	}
}

func TestPeerAuditWithoutAPlaceInAChainIsPoison(t *testing.T) {
	c := harbor(t).PeerAudit.Codec()
	good(t, c, `{"event":"x.new","task_id":"t","instance_id":"a","seq":1,"hash":"h"}`)
	good(t, c, `{"event":"peer.delegate.refused","instance_id":"a","seq":1,"hash":"h"}`)
	for _, record := range []string{
		`{"task_id":"t","instance_id":"a","seq":1,"hash":"h"}`,
		`{"event":"peer.delegate.sent","instance_id":"a","seq":1,"hash":"h"}`,
		`{"event":"peer.delegate.sent","task_id":"t","seq":1,"hash":"h"}`,
		`{"event":"peer.delegate.sent","task_id":"t","instance_id":"a","hash":"h"}`,
		`{"event":"peer.delegate.sent","task_id":"t","instance_id":"a","seq":0,"hash":"h"}`,
		`{"event":"peer.delegate.sent","task_id":"t","instance_id":"a","seq":1}`,
		`{"event":"peer.delegate.sent","task_id":"t","instance_id":"a","seq":1,"hash":"h","tools_used":"read"}`,
	} {
		poison(t, c, record, ErrType)
	}
}

package archive

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/turntable-streams/turntable/processors/embedded"
)

// brokenWorld is an agent on a broker that a test makes fail.
func brokenWorld(t *testing.T) (*world, *embedded.Broker) {
	t.Helper()
	broker, err := embedded.Start(embedded.Config{})
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, broker.Close()) })
	w := newWorldOn(t, broker.Addrs(), 2)
	for n := range 10 {
		w.session(fmt.Sprintf("s%d", n), 2)
	}
	return w, broker
}

func TestOffsetsOfAnOpenTransactionAreWaitedFor(t *testing.T) {
	t.Parallel()
	w, broker := brokenWorld(t)
	input, group := w.cfg.Catalog.MessageInput.Name(), string(w.cfg.Catalog.Group())
	w.commit(group, input, 0, 1, "")
	listed, err := w.admin.ListTopics(t.Context(), input)
	require.NoError(t, err)
	refused := 0
	broker.Cluster().ControlKey(int16(kmsg.OffsetFetch), func(r kmsg.Request) (kmsg.Response, error, bool) {
		req := r.(*kmsg.OffsetFetchRequest)
		resp := req.ResponseKind().(*kmsg.OffsetFetchResponse)
		if refused++; refused > 3 {
			return nil, nil, false
		}
		broker.Cluster().KeepControl()
		for _, g := range req.Groups {
			of := kmsg.NewOffsetFetchResponseGroup()
			of.Group = g.Group
			in := kmsg.NewOffsetFetchResponseGroupTopic()
			in.Topic, in.TopicID = input, listed[input].ID
			p := kmsg.NewOffsetFetchResponseGroupTopicPartition()
			p.Offset, p.ErrorCode = -1, kerr.UnstableOffsetCommit.Code
			in.Partitions = append(in.Partitions, p)
			of.Topics = append(of.Topics, in)
			resp.Groups = append(resp.Groups, of)
		}
		return resp, nil, true
	})
	_, err = Repartition(t.Context(), w.cfg, 3)
	require.NoError(t, err)
	require.Greater(t, refused, 3)
	require.Len(t, w.offsets(group, input), 3)
}

// A broker that throttles a client answers with nothing.
func TestEmptyFetchesAreNoEnd(t *testing.T) {
	t.Parallel()
	w, broker := brokenWorld(t)
	throttled := 0
	broker.Cluster().ControlKey(int16(kmsg.Fetch), func(r kmsg.Request) (kmsg.Response, error, bool) {
		if throttled++; throttled > 4 {
			return nil, nil, false
		}
		broker.Cluster().KeepControl()
		req := r.(*kmsg.FetchRequest)
		resp := req.ResponseKind().(*kmsg.FetchResponse)
		resp.ThrottleMillis = 1
		for _, t := range req.Topics {
			of := kmsg.NewFetchResponseTopic()
			of.Topic, of.TopicID = t.Topic, t.TopicID
			for _, p := range t.Partitions {
				empty := kmsg.NewFetchResponseTopicPartition()
				empty.Partition, empty.HighWatermark, empty.LastStableOffset = p.Partition, 1000, 1000
				of.Partitions = append(of.Partitions, empty)
			}
			if throttled > 1 { // otherwise it leaves the topic out
				resp.Topics = append(resp.Topics, of)
			}
		}
		return resp, nil, true
	})
	saved, err := Backup(t.Context(), w.cfg, t.TempDir())
	require.NoError(t, err)
	require.EqualValues(t, 40, saved.Records)
	require.Greater(t, throttled, 4)
}

// A right that is missing in the middle is named with its topic, and the same call continues when it is granted.
func TestAMissingRightIsNamed(t *testing.T) {
	t.Parallel()
	w, broker := brokenWorld(t)
	table := w.cfg.Catalog.Table()
	rows := w.byKey(table)
	denied := 0
	broker.Cluster().ControlKey(int16(kmsg.DeleteTopics), func(r kmsg.Request) (kmsg.Response, error, bool) {
		req := r.(*kmsg.DeleteTopicsRequest)
		resp := req.ResponseKind().(*kmsg.DeleteTopicsResponse)
		broker.Cluster().KeepControl()
		if denied++; denied != 3 { // the third topic
			return nil, nil, false
		}
		of := kmsg.NewDeleteTopicsResponseTopic()
		of.TopicID, of.ErrorCode = req.Topics[0].TopicID, kerr.TopicAuthorizationFailed.Code
		resp.Topics = append(resp.Topics, of)
		return resp, nil, true
	})
	_, err := Repartition(t.Context(), w.cfg, 3)
	require.ErrorIs(t, err, kerr.TopicAuthorizationFailed)
	require.ErrorContains(t, err, "delete the topic "+table)
	require.ErrorContains(t, err, "the principal needs")
	require.ErrorContains(t, err, "run the same command again, which continues")
	_, err = Repartition(t.Context(), w.cfg, 3)
	require.NoError(t, err)
	require.Equal(t, rows, w.byKey(table))
}

// The list of groups has only those that the principal may describe. The agent's own ones are asked for by name.
func TestAGroupThatIsNotListedIsSaved(t *testing.T) {
	t.Parallel()
	w, broker := brokenWorld(t)
	input, group := w.cfg.Catalog.MessageInput.Name(), string(w.cfg.Catalog.Group())
	w.commit(group, input, 0, 1, "")
	broker.Cluster().ControlKey(int16(kmsg.ListGroups), func(r kmsg.Request) (kmsg.Response, error, bool) {
		broker.Cluster().KeepControl()
		return r.(*kmsg.ListGroupsRequest).ResponseKind(), nil, true
	})
	dir := t.TempDir()
	_, err := Backup(t.Context(), w.cfg, dir)
	require.NoError(t, err)
	d, err := open(dir)
	require.NoError(t, err)
	require.Equal(t, positions{0: {At: 1}}, d.plan.Groups[group][input])
}

func TestFewerReplicasThanWritesNeedAreRefused(t *testing.T) {
	t.Parallel()
	w, _ := brokenWorld(t)
	w.cfg.Replication = 1
	j, err := openJournal(t.Context(), w.cfg, true)
	require.NoError(t, err)
	defer j.client.Close()
	_, err = j.ready(t.Context(), &copying{topic: topic{Config: map[string]string{"min.insync.replicas": "2"}}, to: "new", parts: 1}, topicID{})
	require.ErrorIs(t, err, ErrConfig)
	require.NotContains(t, w.names(), "new")
}

// Package share is the source of a worker on Kafka's share groups (KIP-932): the broker locks each record for one worker,
// acknowledges it by itself, and delivers a released or expired record again.
//
// It speaks the protocol itself instead of using the share consumer of the client library, which accepts a record at the
// next poll and does not keep renewals across polls: there, each running call needs a client and a group member of its own,
// and a share group has at most 200 members by default. Here a process is one member with one fetch connection per broker,
// whatever its concurrency:
//
//	member    heartbeats; learns which broker leads each partition
//	session   one per broker: fetches as many records as there are free slots, renews locks, sends verdicts
//	held      a record of this process, from its acquisition to the acknowledgement of its verdict
package share

// Package migrate takes over the sessions of FlightDeck's processing application, and gives them back.
//
//	{agent}-think-request-response --(Import)--> {agent}-streams-table
//	{agent}-think-request-response --(Export)--> {agent}-streams-think-response-store-changelog
//
// FlightDeck keeps a session's history as the latest record of {agent}-think-request-response, and in the changelog of a store,
// from which Import takes the sessions that the retention of the topic has deleted. Its consumer group is that of
// package turn, so the turn continues at the offsets that FlightDeck has committed. Import reads the records before these
// offsets and writes the history, cost and user of each session into the changelog of the turn's table. The turn then
// recovers them as its own rows. Call it before the group runs for the first time.
//
// Import runs once for an agent: the consumer group {agent}-history-import records where it begins, how far it is, and that
// it is complete. A process that is killed continues on its next start. Of several processes, one imports and the others
// wait. Import is refused while {agent}-streams has members, and if the table has rows of the turn.
//
// Export is the way back: it writes the sessions that were answered since the import to the changelog of FlightDeck's
// history store, so that the Java application knows them when it starts again, and moves the group past what the
// application would repeat. ReturnOutputs does this for the outputs that FlightDeck's chat-api delivers.
package migrate

// The part of TestOneStory that a Durable Streams client has: it prints what a stream, URL, holds.
import { stream } from '@durable-streams/client';

const answer = await stream({ url: process.argv[2], offset: '-1', live: false });
process.stdout.write(await answer.text());

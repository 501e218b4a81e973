// The types of requests and answers. Generated from httpapi/openapi.yaml by `go generate ./httpapi/js/generate`: do not edit.

export type Appended = {
  count: number;
  firstSequence: Sequence;
  /** The last sequence. There are no gaps between the two. */
  lastSequence: Sequence;
};

/** How much the model calls of a tenant's sessions may use on this day of UTC, and how much they have used or reserved. */
export type Budget = {
  tokens: number;
  /** Absent if any number is allowed. */
  tokensPerDay?: number;
  usd: number;
  /** Absent if any amount is allowed. */
  usdPerDay?: number;
};

/**
 * The progress of a tool call; empty: the call does not exist at that sequence. A call that waited and has its answer is pending until the
 * session continues; a call whose turn has ended without an answer has failed.
 */
export type CallStatus = ("" | "pending" | "running" | "waiting" | "done" | "failed");

/**
 * How much of a stream a client has. `12` is everything up to sequence 12; `12.3` is that and three frames of the next record
 * that makes any.
 */
export type ChatPosition = string;

export type ChatRequest = {
  agentType?: string;
  /** The client's name of the chat, and the session's id if that is not given. */
  id?: string;
  /** The message that continues, or whose answer is to be generated again. */
  messageId?: string;
  messages: Array<ClientMessage>;
  /** Metadata of the user message; its members replace those of the message's own metadata. `helix` and `hidden` are reserved. */
  metadata?: { [member: string]: unknown };
  sessionId?: SessionId;
  tags?: Tags;
  trigger?: ("submit-message" | "regenerate-message");
  /** Whose the session is, if it is new; by default the caller's user. Another user than the caller's is 403 USER_MISMATCH, unless the caller has the right act-as. */
  userId?: Label;
} & ({
  sessionId: SessionId;
} | {
  /** The client's name of the chat, and the session's id if that is not given. */
  id: string;
});

export type ChatStopRequest = {
  reason?: string;
  sessionId?: SessionId;
};

export type Checkpoint = {
  id: string;
  messageCount: number;
  runId: string;
  status: SessionStatus;
  stepCount: number;
  /** The state of the checkpoint is that at this sequence. */
  streamSequence: Sequence;
  timestamp: Milliseconds;
};

export type ChunkEvent = {
  chunk: StreamChunk;
  sequence: Sequence;
  type: "chunk";
};

/**
 * A UI message as a client has it. Of a user's, text parts and file parts with data URLs are taken; of an assistant's, the
 * outputs and approvals of calls that wait.
 */
export type ClientMessage = {
  /** The client's id of the message. The same message with the same id is accepted once. */
  id?: string;
  metadata?: ({ [member: string]: unknown } | null);
  parts?: Array<{ [member: string]: unknown }>;
  role: string;
} & { [member: string]: unknown };

export type Compared = Spent & {
  agentType: string;
  /** The messages of the session itself. */
  messages: Array<Message>;
  sequence: Sequence;
  sessionId: SessionId;
  /** Empty: before everything. */
  status: (SessionStatus | "");
  /** The steps of the session itself, without truncated ones. A fork has only its own. */
  steps: Array<{
    /** From its first record to its last, waiting included. */
    durationMs: number;
    step: number;
    turn: number;
    usage: TokenUsage;
  }>;
  /** The tool calls of the tree, those of the session itself first. */
  toolCalls: Array<{
    /** Any JSON. */
    arguments: unknown;
    error?: string;
    /** Any JSON, if it is done. */
    result?: unknown;
    /** Whose model asked for it. */
    sessionId: string;
    status: CallStatus;
    toolCallId: string;
    toolName: string;
  }>;
};

export type Comparison = {
  a: Compared;
  b: Compared;
  /** How many messages at the beginning have the same content in both, regardless of their times and ids. */
  common: number;
  /** The one of the two that the other was forked from, and where. */
  forkedFrom?: {
    /** The fork's first record, which contains the copied state. */
    record: Sequence;
    sequence: Sequence;
    sessionId: SessionId;
  };
  /** The patch from the custom state of a to that of b. */
  patch: Patch;
};

/** Something that is not well, while the server works. */
export type Degradation = {
  /** What to do. */
  advice: string;
  check: ("certificates" | "clock" | "disk" | "listings" | "quotas" | "replicas");
  found: string;
  /** false: it may become a problem. */
  problem?: boolean;
  /** The file, server or tenant. */
  target?: string;
};

/** The failures that acknowledged appends survive: fsync, interval=<duration>, replicated×<servers>, memory or unknown. */
export type Durability = string;

export type Duration = string;

export type Erased = {
  /** Up to 200 forks of the session, which keep what they copied: those that the read models have and the caller may erase as well. `GET /sessions?forkedFrom=` lists all. It is empty without read models. */
  forks: Array<string>;
  /** Files that the pending erasure can't remove, and what an operator must do. */
  left?: string;
  /** Bytes may be left. The nodes finish the erasure. */
  pending: boolean;
  sessionId: SessionId;
  /** The reason why the erasure is pending. It needs no action. */
  waitsFor?: string;
};

export type ErasedMemories = {
  /** Bytes may be left. */
  pending: boolean;
  scope: MemoryScope;
};

export type Error = {
  code: ErrorCode;
  /** A hint, or the subject of the code. */
  detail?: (string | {
    /** The member or parameter that is not valid. */
    field?: string;
    floor?: Sequence;
    head?: Sequence;
    /** The index of the chunk in the request, from 0. */
    index?: number;
    /** In bytes or chunks; of QUOTA_EXCEEDED, the quota. */
    limit?: number;
    /** The line of the import, from 1. */
    line?: number;
    /** The problems of a configuration, with file, line and key. */
    problems?: Array<string>;
    /** The quota of QUOTA_EXCEEDED. */
    quota?: ("sessions" | "bytes" | "runs" | "streams");
    /** How many records of the import are in the log. */
    records?: number;
  });
  /** A text for people. Programs use the code. */
  error: string;
  /** The answer's X-Request-Id. */
  requestId?: string;
  /** The outcome of a submission. */
  status?: "validation_error";
};

/** Each with the statuses that it comes with. */
export type ErrorCode = ("INVALID_REQUEST" | "UNAUTHORIZED" | "USER_MISMATCH" | "NOT_FOUND" | "METHOD_NOT_ALLOWED" | "ALREADY_RUNNING" | "ALREADY_COMPLETED" | "SEQUENCE_CONFLICT" | "INVALID_CONFIG" | "IDEMPOTENCY_MISMATCH" | "IDEMPOTENCY_EXPIRED" | "SESSION_EXISTS" | "STREAM_ENDED" | "ERASURE_PENDING" | "STREAM_CONFLICT" | "PRODUCER_FENCED" | "TRUNCATED" | "LENGTH_REQUIRED" | "PAYLOAD_TOO_LARGE" | "BUSY" | "TOO_MUCH_WORK" | "CURSOR_AHEAD" | "RATE_LIMITED" | "QUOTA_EXCEEDED" | "INTERNAL_ERROR" | "WORKSPACE_WIRING" | "NOT_IMPLEMENTED" | "UNAVAILABLE" | "READ_ONLY" | "INTERRUPT_DEADLINE_EXCEEDED");

export type File = {
  folder?: boolean;
  modified?: Milliseconds;
  /** Relative to the workspace. */
  path: string;
  /** In bytes; 0 for a folder. */
  size: number;
};

export type FilesPage = Page & {
  items?: Array<File>;
  /** The folder has more than the listing. Ask for its folders one by one. */
  truncated?: boolean;
};

export type FinishReason = ("stop" | "length" | "tool-calls" | "content-filter" | "error" | "other");

export type Flag = ("true" | "false" | "1" | "0");

export type ForkEdit = {
  /** A new text for a message of the user; its files stay. */
  message?: {
    content: string;
    /** Which one, from 0; by default the last one of a user. */
    index?: number;
  };
  /** The system prompt of the fork and of its forks, in place of the agent's; at most 256 KiB. */
  systemPrompt?: string;
  /**
   * The result of a tool call of the session or of its sub-agents: one of result and error. A client's call that waits has it
   * as if it had been submitted; any other call is not executed. A call that waits for a sub-agent can't have one.
   */
  toolResult?: {
    error?: string;
    result?: unknown;
    toolCallId: string;
  };
};

/** The parts of the state that were edited. */
export type ForkEdits = {
  digest: string;
  /** The index of the message. */
  message?: number;
  systemPrompt?: boolean;
  toolCallId?: string;
};

/** At most one of the three places; without one the head. */
export type ForkRequest = Place & {
  edit?: ForkEdit;
  /** With run: a further message. Calls that wait are abandoned. */
  message?: UserInput;
  /** The message after which the fork begins, from 0. */
  messageIndex?: number;
  /** Run on at once: the open turn or, if there is none, a new one with message, or one that answers what was edited. */
  run?: boolean;
  /** The fork's; by default a fresh one. */
  sessionId?: SessionId;
};

export type Forked = {
  edits?: ForkEdits;
  fromSequence: Sequence;
  fromSessionId: SessionId;
  /** The run, if one was asked for. */
  runId?: string;
  sessionId: SessionId;
};

export type FoundMemories = Listing & {
  items?: Array<Memory & {
    /** How well it fits the query: above 0, at most 1. */
    score?: number;
  }>;
  /** The embedder did not answer, so memories that match only by meaning are missing. */
  wordsOnly?: boolean;
};

export type Fresh = {
  /** Whether the answer contains everything that the log had when the request came. */
  current: boolean;
  /** The approximate number of log records that are not in the answer yet. */
  lag?: number;
  /** Why the read models make no progress. */
  problem?: string;
  /** The read models are being rebuilt; sessions may be missing. */
  rebuilding?: boolean;
};

export type History = {
  hasMore: boolean;
  messages: Array<UIMessage>;
};

export type Hit = {
  agentType: string;
  kind: ("message" | "tool_call" | "tool_result");
  role: ("user" | "assistant" | "tool");
  rootSessionId: SessionId;
  /** The record that the message comes from. */
  sequence: Sequence;
  sessionId: string;
  /** Plain text around the words. */
  snippet: string;
  timestamp: Milliseconds;
  toolCallId?: string;
  toolName?: string;
  userId?: string;
};

export type Imported = {
  /** How many of the records this request has appended. */
  appended: number;
  durability: Durability;
  firstSequence: Sequence;
  lastSequence: Sequence;
  records: number;
  sessionId: SessionId;
  /** The hash of all records in this log, without their sequences and times. */
  sha256?: string;
};

/** At most 256 bytes. */
export type Label = string;

/** A session of the tree. */
export type Lane = {
  agentType: string;
  depth: number;
  /** Empty for the root. */
  parentSessionId: string;
  /** The call that made it. */
  parentToolCallId: string;
  sessionId: SessionId;
};

export type ListedRun = Run & {
  agentType: string;
  rootSessionId: SessionId;
  sessionId: string;
  used: Used;
  userId?: string;
};

export type Listing = Page & Fresh;

/** A moment. */
export type Mark = {
  at: Milliseconds;
  /** The id of a checkpoint. */
  id?: string;
  kind: ("checkpoint" | "discarded" | "truncated" | "rollback" | "claimed" | "takeover" | "interrupt" | "abort" | "paused" | "resumed" | "forked" | "recalled" | "error" | "parked" | "ended");
  label: string;
  lane: string;
  sequence: Sequence;
  struck?: boolean;
  struckBy?: Sequence;
  updated: Sequence;
};

export type Memory = {
  content: string;
  createdAt: Milliseconds;
  /** Whether it is found by its meaning. */
  embeddingStatus: ("pending" | "complete");
  memoryId: Label;
  metadata?: { [member: string]: unknown };
  scope: MemoryScope;
  /** Its record in the scope's log. */
  sequence: Sequence;
  source?: MemorySource;
  tags?: Array<string>;
};

export type MemoryScope = {
  id: Label;
  kind: MemoryScopeKind;
  /** Whose user or agent it is; none: of the sessions without a tenant. */
  tenant?: Label;
};

export type MemoryScopeKind = ("user" | "agent" | "session");

/** The conversation in which it was saved. */
export type MemorySource = {
  agentType: string;
  runId?: string;
  sessionId: SessionId;
  toolCallId?: string;
};

export type Message = {
  /** The kind of answer that the call waited for. */
  answeredAs?: ("client" | "approval" | "child");
  content?: string;
  denial?: {
    approvalId: string;
    reason?: string;
  };
  error?: string;
  errorCode?: string;
  files?: Array<MessageFile>;
  /** The client's id of the message. */
  messageId?: string;
  metadata?: { [member: string]: unknown };
  parts?: Array<TurnPart>;
  /** Any JSON. */
  result?: unknown;
  role: ("user" | "assistant" | "tool");
  /** The record that it comes from. */
  sequence: Sequence;
  step?: number;
  stopReason?: ("end_turn" | "tool_use" | "max_tokens" | "stop_sequence" | "content_filter" | "error" | "unknown");
  timestamp: Milliseconds;
  toolCallId?: string;
  toolName?: string;
  turn: number;
};

export type MessageFile = {
  /** A data URL; of a file that a model has made also another one. */
  data: string;
  filename?: string;
  mediaType: string;
};

export type MessageRequest = {
  message: UserInput;
  /** Metadata of the last message; its members replace those of the message's own metadata. */
  metadata?: { [member: string]: unknown };
  /** The session's user: if the session has another one, the answer is 403. */
  userId?: Label;
};

export type Metadata = { [member: string]: string };

/** Milliseconds since the epoch. */
export type Milliseconds = number;

export type Page = {
  hasMore: boolean;
  items: Array<unknown>;
  limit: number;
  offset: number;
  total: number;
};

export type ParkedRecord = {
  reason: string;
  sequence: Sequence;
  /** The root session; ~memory/SCOPE/ID is the log of a scope's memories. */
  sessionId: string;
  /** Later records of the session can't be understood without it: the session's rows stay as they were. */
  stuck?: boolean;
  type: string;
};

/** RFC 6902. */
export type Patch = Array<{
  op: ("add" | "remove" | "replace");
  path: string;
  /** Any JSON. */
  value?: unknown;
}>;

export type PendingToolCall = {
  approvalId?: string;
  createdAt: Milliseconds;
  deadline?: Milliseconds;
  /** Any JSON. */
  input: unknown;
  kind: ("client" | "approval");
  /** The root or a sub-agent. */
  ownerSessionId: SessionId;
  /** The run whose model turn recorded the call. */
  runId: string;
  stepId: string;
  toolCallId: string;
  toolName: string;
};

export type Place = {
  checkpointId?: string;
  sequence?: number;
};

export type ProcessedMemories = {
  /** Memories that have a vector now. */
  embedded: number;
  /** Memories whose text the embedder refuses. */
  failed: number;
  /** Memories without a vector. */
  found: number;
};

/** A chunk that an outside producer may write. Its agentId is the session's id; the first one's agentType names the session's agent. */
export type ProducedChunk = StreamChunk & {
  type?: ("text_delta" | "thinking" | "tool_arg_stream_start" | "tool_arg_stream_delta" | "tool_arg_stream_end" | "source_url" | "source_document" | "file" | "tool_start" | "tool_end" | "tool_approval_request" | "tool_approval_response" | "tool_input_error" | "tool_output_error" | "subagent_start" | "subagent_end" | "custom" | "state_patch" | "error" | "output");
};

export type Readiness = {
  agents?: Array<string>;
  backend?: string;
  /** What is not well with the node or its cluster, as of the last few seconds. It does not affect ready. */
  degraded?: Array<Degradation>;
  /** The server is going to stop; other nodes continue its runs, and it still serves requests. */
  draining?: boolean;
  durability?: Durability;
  /** What the durability means, in words. */
  guarantee?: string;
  partitions?: number;
  /** How far listings are behind the log. It does not affect ready. */
  readModels?: Fresh & {
    /** How many records could not be used. */
    parked?: number;
  };
  ready: boolean;
  /** Why the log takes no appends now. */
  refuses?: string;
  /** The servers that keep the log, if it is replicated and has a quorum. A missing one does not affect ready. */
  replicas?: {
    /** How many operations the present server lacks that is furthest behind. */
    lag?: number;
    /** Servers that do not answer, by name. */
    missing?: Array<string>;
    /** Servers that do, in the partition with the fewest. */
    present: number;
    /** How far the clock of a server that leads a partition differs from this node's, at least, in milliseconds. */
    skewMs?: number;
    /** Servers that should keep each record. */
    wanted: number;
  };
  version?: string;
};

export type Record = {
  /** A session of the tree. */
  agent: string;
  /** The payload where data can't keep its bytes. */
  base64?: string;
  call?: string;
  /** The payload, any JSON. */
  data: unknown;
  /** Empty, as type and agent then are: helixd did not write it. */
  kind: ("chunk" | "fact" | "");
  ordinal?: number;
  /** Where an imported record was first stored. */
  origin?: {
    sequence: Sequence;
    time: string;
  };
  run?: string;
  sequence: Sequence;
  time: string;
  type: string;
  writer?: string;
};

export type Reloaded = {
  /** The names of all agents, sorted. */
  agents: Array<string>;
  /** Keys whose values have changed since the server was started. */
  needsRestart: Array<string>;
};

export type RemoteStatus = {
  error?: string;
  /** Whether this server executes the run. */
  isExecuting: boolean;
  /** A cursor. */
  latestSequence: Sequence;
  /** Any JSON. */
  output?: unknown;
  runId?: string;
  sessionId: SessionId;
  /** The custom state. */
  state: unknown;
  status: ("running" | "completed" | "failed" | "interrupted" | "paused");
  /** Committed steps of the current or last turn. */
  stepCount: number;
  streamId: string;
};

export type ResumeRequest = {
  /** Decides all open approvals (with_confirmation). */
  approved?: boolean;
  /** The checkpoint to which from_checkpoint goes back. */
  checkpointId?: string;
  message?: UserInput;
  /** The default is with_message if there is a message, otherwise continue. */
  mode?: ("continue" | "with_message" | "with_confirmation" | "from_checkpoint" | "retry");
  sessionId: SessionId;
  /** The turn that retry repeats. The last turn by default. */
  turn?: number;
};

export type Retained = {
  /** The size of the log and its segments now. */
  bytes: number;
  /** The new floors of sessions from which records were removed, by session. */
  dropped: { [member: string]: Sequence };
  purged: Array<{
    below: Sequence;
    partition: number;
    records: number;
  }>;
};

export type Retention = {
  /** Segments of this age are removed for good. */
  dropOlderThan?: Duration;
  /**
   * What is oldest goes until the log and its segments hold no more, or nothing is left that may. Payloads over 256 KiB
   * don't count, and stay.
   */
  maxBytes?: number;
  /** Sealed records of this age leave the log. */
  purgeOlderThan?: Duration;
};

export type RolledBack = {
  /** The record that the session went back to. */
  afterSequence?: Sequence;
  /** The last record that was truncated. */
  atSequence?: Sequence;
  /** False: there was nothing to truncate. */
  rolledBack: boolean;
  sessionId: SessionId;
};

/** The sums of a session and its sub-agents. */
export type Rollup = UsageTotals & {
  runs?: Array<UsageTotals & {
    runId: string;
    sessionId: string;
  }>;
  sessionId: string;
  subAgents?: Array<UsageTotals & {
    agentType: string;
    callId?: string;
    parentSessionId: string;
    sessionId: string;
  }>;
  /** The time that calls have waited for a person, by tool, in milliseconds. */
  waits?: { [member: string]: {
    calls: number;
    totalMs: number;
  } };
};

export type Run = {
  claims: number;
  completedAt?: Milliseconds;
  mode: RunMode;
  /** The X-Request-Id of the request that asked for it. */
  requestId?: string;
  runId: string;
  /** The head when it was asked for. */
  startSequence: Sequence;
  startedAt: Milliseconds;
  status: RunStatus;
  /** Steps that it has committed. */
  stepCount: number;
  /** A rollback has gone back to before it. */
  struck?: boolean;
  /** The header traceparent of the request that asked for it. */
  traceParent?: string;
  turn: number;
};

export type RunMode = ("start" | "continue" | "with_message" | "with_confirmation" | "from_checkpoint" | "retry");

export type RunStatus = ("running" | "completed" | "failed" | "interrupted" | "suspended_client_tool" | "suspended_awaiting_children" | "suspended_step_partial");

export type SaveMemory = {
  /** At most 16384 bytes. */
  content: string;
  /** The user's id, the agent's type or the session's id. */
  id: Label;
  /** At most 16384 bytes of JSON without insignificant whitespace. */
  metadata?: { [member: string]: unknown };
  scope: MemoryScopeKind;
  /** Words under which it is found. */
  tags?: Array<Label>;
  /** Whose user or agent it is. The caller's own if left out and the caller is bound to one. */
  tenant?: Label;
};

export type Sequence = number;

/** 1 to 256 bytes of UTF-8 without control characters. */
export type SessionId = string;

export type SessionState = {
  agentType: string;
  /** Annotations: sources, files and custom data that are shown with an answer. */
  asides?: Array<unknown>;
  checkpoints?: Array<Checkpoint>;
  /** How a sub-agent's session belongs to its parent. */
  child?: { [member: string]: unknown };
  committedAt?: Sequence;
  createdAt: Milliseconds;
  /** Any JSON. */
  customState: unknown;
  delivered?: number;
  error?: {
    code?: string;
    message: string;
    retryable?: boolean;
  };
  forkedFrom?: {
    edits?: ForkEdits;
    /** The fork's first record, which contains the copied state. */
    record: Sequence;
    sequence: Sequence;
    sessionId: string;
  };
  messages: (Array<Message> | null);
  metadata?: Metadata;
  /** Any JSON. */
  output?: unknown;
  /** The session's own calls that wait for a person and have no answer, by id. There are some exactly if it awaits a client. */
  pendingClientToolCalls?: { [member: string]: PendingToolCall };
  /** The tool calls of a remote sub-agent, oldest first, with their ids here and on its server. */
  remoteCalls?: Array<{
    /** The session that made the call; missing: the remote sub-agent's. */
    agentId?: string;
    id: string;
    /** Whether the call has ended. */
    over?: boolean;
    remoteId: string;
  }>;
  remoteSequence?: Sequence;
  resumeCount?: number;
  /** The reason of the last stream_resync. */
  resync?: string;
  runs?: Array<Run>;
  sessionId: string;
  /** SessionStatus; empty before the first record. */
  status: ("" | "active" | "paused" | "interrupted" | "completed" | "failed");
  stepCount?: number;
  /** Where the stream has stopped. */
  stopped?: { [member: string]: unknown };
  streamId: string;
  /** StreamStatus; empty before the first record. */
  streamStatus: ("" | "active" | "paused" | "ended" | "failed");
  struckCalls?: Array<string>;
  /** The turns of sub-agents that are open in the stream, by the sub-agent's session. */
  subAgentTurns?: { [member: string]: unknown };
  /** If a run was suspended, or stopped while it waited: where the next run continues. */
  suspensionContext?: {
    /** Calls whose answer the next run uses. */
    answeredToolCallIds?: Array<string>;
    /** Sub-agents that wait. */
    childSessionIds?: Array<string>;
    /** The run that was suspended. */
    runId: string;
    runStatus: RunStatus;
    stepId: string;
    /** When the first of these calls was suspended. */
    suspendedAt: Milliseconds;
    /** Calls that wait for a person. */
    toolCallIds?: Array<string>;
  };
  /** The system prompt that was given to a fork. It replaces the agent's. */
  systemPrompt?: string;
  tags?: Array<string>;
  /** Whose caller created the session, of a root session. */
  tenant?: string;
  /** The persistent sub-agent was terminated, and accepts no more messages. */
  terminated?: boolean;
  /** The open turn: its step, its calls and what they wait for. */
  turn?: { [member: string]: unknown };
  turnCount?: number;
  updatedAt: Milliseconds;
  /** The usage of the session without its sub-agents. */
  usage?: { [member: string]: unknown };
  userId?: string;
  version?: number;
};

export type SessionStatus = ("active" | "paused" | "interrupted" | "completed" | "failed");

export type SessionSummary = Summary & {
  pendingToolCalls: Array<PendingToolCall>;
};

export type Snapshot = {
  messages: Array<UIMessage>;
  /** The custom state. */
  state: unknown;
  /** The status of the stream now. */
  status: StreamStatus;
  /** The sequence of state and messages; a cursor. */
  streamSequence: Sequence;
  timestamp: Milliseconds;
};

/** Something that lasted, or a single message. */
export type Span = {
  callId?: string;
  /** Of a call that failed: what the server that it needed has done, and the setting to look at. */
  cause?: string;
  /** How many characters were streamed in it. */
  chars?: number;
  /** While it is open: of its last record. */
  endedAt: Milliseconds;
  error?: string;
  /** Its first record. */
  from: Sequence;
  /** The id of the span. It never changes. */
  id: string;
  kind: ("run" | "step" | "user" | "reasoning" | "text" | "tool" | "approval" | "client_tool" | "child" | "suspended" | "custom" | "outside");
  label: string;
  lane: string;
  /** Which node executed it last. */
  node?: string;
  open: boolean;
  /** How many records it has: of a run, those that it wrote; of a step, all of its lane in that time. */
  records: number;
  runId?: string;
  startedAt: Milliseconds;
  status: ("open" | "done" | "failed" | "waiting" | "interrupted" | "denied");
  step?: number;
  /** Whether it is truncated. */
  struck?: boolean;
  /** The marker that truncated it. */
  struckBy?: Sequence;
  /** Its last record so far. */
  to: Sequence;
  turn?: number;
  /** The record that it changed with last. */
  updated: Sequence;
};

/** The usage of the whole tree, truncated records included. It is negative if to is before from. */
export type Spent = {
  /** The cost of the tokens, in USD, at the current prices. Absent if not all prices are known. */
  cost?: number;
  /** The time between the two records, by their timestamps, in milliseconds. With from 0, since the session was created. */
  durationMs: number;
  /** The models that were used and have no price. */
  unpriced?: Array<string>;
  usage: TokenUsage;
};

export type StartRequest = {
  agentType: string;
  message: UserInput;
  metadata?: Metadata;
  sessionId: SessionId;
  /** The custom state that the session begins with. The agent's own by default. */
  state?: { [member: string]: unknown };
  tags?: Tags;
  /** Whose the session is, if it is new; by default the caller's user. Another user than the caller's is 403 USER_MISMATCH, unless the caller has the right act-as. */
  userId?: Label;
};

export type Started = {
  runId: string;
  sessionId: SessionId;
  streamId: string;
};

/** The fold of a session's tree. Members without a description are internal and may change. */
export type State = SessionState & {
  /** The last appends with an idempotency key, by key. */
  appends?: { [member: string]: unknown };
  askedAt?: Milliseconds;
  /** The size of the payloads of all records so far, in bytes. */
  bytes?: number;
  /** Sub-agents' sessions, by id. */
  children?: { [member: string]: SessionState & {
    parentSessionId: SessionId;
    rootSessionId: SessionId;
  } };
  /** The last claim of the session tree. */
  claim?: { [member: string]: unknown };
  /** The session that owns each pending call of the tree, by the call's id. */
  clientToolCallOwnership?: { [member: string]: SessionId };
  /** The truncated ranges. */
  dead?: Array<unknown>;
  head: Sequence;
  /** Fingerprints of the idempotency keys before those. */
  oldKeys?: Array<string>;
  /** Records that could not be used. */
  parked?: Array<unknown>;
};

export type StateAt = {
  sequence: Sequence;
  state: State;
};

/** Without `only` it has a patch, messages and tool calls. */
export type StateDiff = Spent & {
  from: Sequence;
  /** New messages of the session itself, after from. */
  messages?: Array<Message>;
  /** The patch from the state at from, as /sessions/{id}/state shows it, to that at to. */
  patch?: Patch;
  to: Sequence;
  /** The calls of the tree whose status differs. */
  toolCalls?: Array<{
    after: CallStatus;
    before: CallStatus;
    error?: string;
    /** Any JSON: the result, if the call is finished at to. */
    result?: unknown;
    /** Whose model asked for it. */
    sessionId: string;
    toolCallId: string;
    toolName: string;
  }>;
};

export type StopRequest = {
  reason?: string;
  sessionId: SessionId;
};

/** Data of /sessions/{id}/stream. */
export type StoreEvent = (ChunkEvent | {
  /** Any JSON. */
  finalOutput?: unknown;
  type: "end";
} | {
  error: string;
  type: "fail";
} | {
  status: ("paused" | "active");
  type: "status";
} | {
  /** A client that has this chunk has the truncated chunks, too. */
  atSequence?: Sequence;
  truncatedAtStep: number;
  type: "truncated";
});

/**
 * A chunk of the stream protocol as it is stored. Beside these it has the members of its type; a later version may write
 * other types.
 */
export type StreamChunk = {
  /** The session that produced it. */
  agentId: string;
  agentType: string;
  /** Within the turn, from 1; 0 outside of a step. */
  step: number;
  timestamp: Milliseconds;
  type: string;
} & { [member: string]: unknown };

export type StreamStatus = ("active" | "paused" | "ended" | "failed");

export type SubmitToolResult = ToolAnswer & {
  sessionId: SessionId;
};

export type Submitted = {
  /** The calls of the tree that are open still. */
  pendingToolCallIds: Array<string>;
  /** The answer came too late. */
  reason?: "client_tool_timeout";
  sessionId: SessionId;
  status: ("accepted" | "already_completed");
  toolCallId: string;
};

export type Subscription = {
  /** Secret: the JWT and the seed, as the text of a .creds file. */
  creds: string;
  /** Connections end then. */
  expiresAt: string;
  /** A NATS user's. */
  jwt: string;
  /** Secret: of the key by which the client proves that the JWT is its own. */
  seed: string;
  /** The only subject to which the client may subscribe. */
  subject: string;
  /** The URLs at which NATS clients connect, if the server knows them. */
  urls: {
    nats: Array<string>;
    websocket: Array<string>;
  };
};

export type SubscriptionRequest = {
  /** How long the right lasts, as "30m": from 1s to 24h. The default is the server's. */
  ttl?: string;
};

export type Summary = {
  agentType: string;
  counts: {
    checkpoints: number;
    messages: number;
    /** The number of records of a root session's tree that could not be used. */
    parked?: number;
    runs: number;
    /** Committed, of all runs. */
    steps: number;
  };
  createdAt: Milliseconds;
  currentRun?: Run;
  durability: Durability;
  /** The session of which this one is a fork. */
  forkedFrom?: SessionId;
  /** The last record of the session tree. */
  headSequence: Sequence;
  /** Whether this server executes the run. */
  isExecuting: boolean;
  metadata?: Metadata;
  /** The session that has called this one. A root session has none. */
  parentSessionId?: SessionId;
  sessionId: SessionId;
  status: SessionStatus;
  streamId: string;
  streamStatus: StreamStatus;
  tags?: Array<string>;
  updatedAt: Milliseconds;
  userId?: string;
};

export type Sweep = {
  /** Count, and change nothing. */
  dryRun?: boolean;
};

export type Swept = {
  /** Expired sessions that had ended before. */
  alreadyTerminal: number;
  /** Sessions that have expired. */
  detected: number;
  /** Sessions that could not be swept. The servers log has the reasons. */
  errors: number;
  /** Sessions that the sweep has ended, with session_expired. */
  marked: number;
  /** Expired sessions with a live run. */
  running: number;
  /** Snapshots of workspaces that were removed. */
  snapshotsDeleted: number;
};

/** Labels of a new session, for listings. */
export type Tags = Array<Label>;

/** Data of a chat's stream with `format=text-stream-part`. */
export type TextStreamPart = {
  metadata?: {
    /** Of finish: the cost of the message's tokens in USD. Absent if a price is not known. */
    cost?: number;
    /** In finish: the duration of the message, in milliseconds. */
    durationMs?: number;
    /** The call of the sub-agent that the part comes from. */
    parentToolUseId?: string;
  };
  type: unknown;
} & ({
  type: ("start" | "start-step" | "finish-step");
} | {
  id: string;
  type: ("text-start" | "text-end" | "reasoning-start" | "reasoning-end" | "tool-input-end");
} | {
  id: string;
  text: string;
  type: ("text-delta" | "reasoning-delta");
} | {
  id: string;
  toolName: string;
  type: "tool-input-start";
} | {
  delta: string;
  id: string;
  type: "tool-input-delta";
} | {
  input: { [member: string]: unknown };
  toolCallId: string;
  toolName: string;
  type: "tool-call";
} | {
  /** Any JSON. */
  output?: unknown;
  toolCallId: string;
  toolName: string;
  type: "tool-result";
} | {
  finishReason: FinishReason;
  metadata: {
    durationMs: unknown;
  };
  totalUsage: {
    inputTokens: number;
    outputTokens: number;
    totalTokens: number;
  };
  type: "finish";
} | {
  error: string;
  type: "error";
});

export type Ticket = {
  /** No stream can be opened with it then. */
  expiresAt: string;
  /** Secret: opens the stream. */
  ticket: string;
};

export type Timeline = {
  /** Retention has removed the records up to it. */
  floor?: Sequence;
  /** The last record in it. */
  head: Sequence;
  /** In order of appearance, sub-agents below their callers. */
  lanes: Array<Lane>;
  /** The marks, ordered by sequence. */
  marks: Array<Mark>;
  sessionId: SessionId;
  /** The spans, ordered by their first sequence. */
  spans: Array<Span>;
  startedAt: Milliseconds;
  status: ("active" | "paused" | "interrupted" | "completed" | "failed");
  streamStatus: ("active" | "paused" | "ended" | "failed");
  updatedAt: Milliseconds;
};

export type TokenUsage = {
  cacheWrite?: number;
  cached?: number;
  /** Output tokens, reasoning included. */
  completion: number;
  /** Input tokens, cached and cache-written ones included. */
  prompt: number;
  reasoning?: number;
  total: number;
};

export type ToolAnswer = {
  /** If given, it must be the call's. */
  approvalId?: string;
  approved?: boolean;
  error?: string;
  kind: ("client-tool-result" | "approval-response");
  reason?: string;
  /** Any JSON, at most 1 MiB. It must fit the tool's output schema. */
  result?: unknown;
  /** The root's. */
  sessionId?: SessionId;
  toolCallId: string;
} & ({
  kind: "client-tool-result";
  /** Any JSON, at most 1 MiB. It must fit the tool's output schema. */
  result: unknown;
} | {
  error: string;
  kind: "client-tool-result";
} | {
  approved: boolean;
  kind: "approval-response";
});

export type ToolStats = {
  failedCalls: number;
  totalCalls: number;
};

/** Data of /sse and of replays; `type` is also the event's name. */
export type TransportEvent = (ChunkEvent | {
  /** Any JSON. */
  output?: unknown;
  /** The custom state. */
  state?: unknown;
  /** paused, interrupted: the session can be resumed. active, of a replay: the session continued after the end of the replay. */
  status?: ("paused" | "interrupted" | "active");
  type: "end";
} | {
  code: "TOKEN_EXPIRED";
  type: "close";
} | {
  error: string;
  /** The same may succeed if it is tried again. */
  recoverable: boolean;
  type: "error";
});

/** A part of a model's answer, in the model's order. */
export type TurnPart = {
  file?: MessageFile;
  /** Data that the model's provider needs back, such as a signature. */
  providerData?: { [member: string]: unknown };
  reasoning?: string;
  source?: {
    filename?: string;
    mediaType?: string;
    sourceId: string;
    title?: string;
    url?: string;
  };
  text?: string;
  toolCall?: {
    /** Any JSON. */
    arguments: unknown;
    toolCallId: string;
    toolName: string;
  };
};

export type UIMessage = {
  /** The id. The default is msg-{index}, with the suffix -partial while the message is unfinished. */
  id: string;
  metadata?: { [member: string]: unknown };
  parts: Array<UIMessagePart>;
  role: ("user" | "assistant");
};

export type UIMessagePart = {
  type: unknown;
} & ({
  state?: ("streaming" | "done");
  text: string;
  type: ("text" | "reasoning");
} | {
  type: "step-start";
} | {
  filename?: string;
  mediaType: string;
  type: "file";
  url: string;
} | {
  sourceId: string;
  title?: string;
  type: "source-url";
  url: string;
} | {
  filename?: string;
  mediaType: string;
  sourceId: string;
  title: string;
  type: "source-document";
} | {
  /** Any JSON. */
  data: unknown;
  id?: string;
  type: string;
} | UIToolPart);

/** Data of a chat's stream, as the AI SDK's clients take it. They refuse unknown members. */
export type UIStreamPart = {
  type: unknown;
} & ({
  messageId: string;
  /** Any JSON. */
  messageMetadata?: unknown;
  type: "start";
} | {
  type: ("start-step" | "finish-step");
} | {
  id: string;
  type: ("text-start" | "text-end" | "reasoning-start" | "reasoning-end");
} | {
  delta: string;
  id: string;
  type: ("text-delta" | "reasoning-delta");
} | {
  toolCallId: string;
  toolName: string;
  type: "tool-input-start";
} | {
  inputTextDelta: string;
  toolCallId: string;
  type: "tool-input-delta";
} | {
  /** Any JSON. */
  input: unknown;
  providerExecuted?: boolean;
  toolCallId: string;
  toolName: string;
  type: "tool-input-available";
} | {
  errorText: string;
  /** Any JSON. */
  input: unknown;
  providerExecuted?: boolean;
  toolCallId: string;
  toolName: string;
  type: "tool-input-error";
} | {
  approvalId: string;
  toolCallId: string;
  type: "tool-approval-request";
} | {
  toolCallId: string;
  type: "tool-output-denied";
} | {
  /** Any JSON. */
  output: unknown;
  providerExecuted?: boolean;
  toolCallId: string;
  type: "tool-output-available";
} | {
  errorText: string;
  providerExecuted?: boolean;
  toolCallId: string;
  type: "tool-output-error";
} | {
  sourceId: string;
  title?: string;
  type: "source-url";
  url: string;
} | {
  filename?: string;
  mediaType: string;
  sourceId: string;
  title: string;
  type: "source-document";
} | {
  mediaType: string;
  type: "file";
  url: string;
} | {
  /** Any JSON. */
  data: unknown;
  id?: string;
  transient?: true;
  type: string;
} | {
  finishReason: FinishReason;
  /** Only of servers that are configured to. */
  messageId?: string;
  /** Any JSON. */
  messageMetadata?: unknown;
  type: "finish";
} | {
  /** Only of servers that are configured to. */
  reason?: string;
  type: "abort";
} | {
  errorText: string;
  type: "error";
});

/** Type is `tool-` and the tool's name. */
export type UIToolPart = {
  /** Any JSON. */
  input?: unknown;
  /** Whether the server executes the call; absent while the client does, or a person has to be asked. */
  providerExecuted?: boolean;
  toolCallId: string;
  type: string;
  state: unknown;
} & ({
  state: "input-streaming";
} | {
  /** Any JSON. */
  input: unknown;
  state: "input-available";
} | {
  approval: {
    approved?: boolean;
    id: string;
    reason?: string;
  };
  /** Any JSON. */
  input: unknown;
  state: ("approval-requested" | "approval-responded" | "output-denied");
} | {
  /** Any JSON. */
  input: unknown;
  /** Any JSON. */
  output: unknown;
  state: "output-available";
} | {
  errorText: string;
  /** Any JSON. */
  input: unknown;
  state: "output-error";
});

export type Unsubscribed = {
  revoked: true;
  sessionId: string;
};

export type UsageEntry = {
  amount?: number;
  id: string;
  kind: ("tokens" | "tool" | "subagent" | "custom");
  model?: string;
  runId: string;
  sequence: Sequence;
  sessionId: string;
  source: ("agent" | "tool" | "subagent");
  sourceName: string;
  sourceType?: string;
  stepCount: number;
  success?: boolean;
  timestamp: Milliseconds;
  tokens?: TokenUsage;
  toolCallId?: string;
};

export type UsagePage = Page & {
  /** Of the session's tenant, if it has one. Callers that act for one user don't see it. */
  budget?: Budget;
  /** Retention has removed the records up to it: there are no entries. The sums stay. */
  floor?: Sequence;
  items?: Array<UsageEntry>;
  rollup: Rollup;
};

export type UsageReport = Fresh & {
  by: ("agent" | "model" | "user" | "day");
  rows: Array<UsageRow>;
  /** Its key is empty. */
  total: UsageRow;
};

export type UsageRow = Used & {
  /** The cost of the tokens of models with a price. */
  costUsd: number;
  /** The agent type, the provider's name of the model, the user (empty: sessions without one) or the day (UTC). */
  key: string;
  /** Runs with usage. */
  runs: number;
  /** Sessions with usage. */
  sessions: number;
  /** Models that were used and have no price. */
  unpriced?: Array<string>;
};

export type UsageTotals = {
  modelCalls: number;
  models?: { [member: string]: {
    calls: number;
    tokens: TokenUsage;
  } };
  /** Usage that tools have recorded, by source type and source name. */
  recorded?: { [member: string]: { [member: string]: {
    count: number;
    sum: number;
  } } };
  tokens: TokenUsage;
  toolStats: ToolStats;
  tools?: { [member: string]: ToolStats };
};

export type Used = {
  failedToolCalls: number;
  modelCalls: number;
  tokens: TokenUsage;
  toolCalls: number;
};

export type UserInput = (string | Array<UserInputMessage>);

export type UserInputMessage = {
  /** Empty only with files. */
  content: string;
  files?: Array<MessageFile>;
  /** `hidden: true` keeps the message from clients; `helix` is reserved. */
  metadata?: { [member: string]: unknown };
  role: "user";
};

export type Word = string;

export type Workspace = {
  capabilities: Array<("fs" | "shell" | "code" | "snapshot")>;
  /** Why it failed, or was closed. */
  error?: string;
  lastUsedAt?: Milliseconds;
  name: string;
  openedAt?: Milliseconds;
  /** The kind: memory, local, objects, or one of the embedding program. */
  providerId: string;
  /** The reference by which its provider finds it. */
  ref?: { [member: string]: unknown };
  status: ("unopened" | "open" | "failed" | "closed");
};

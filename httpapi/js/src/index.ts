export { HelixClient, type CallOptions, type RecordsOptions } from './client.js';
export { HelixError, type Connection, type ConnectionOptions } from './connection.js';
export { HelixChatTransport, type ChatPage, type LoadedChat, type ReconnectOptions, type SendOptions, type TransportOptions } from './transport.js';
export type * from './wire.js';

// For suites that start a broker of their own, or need none.
export { providePostgres as setup } from './global-setup.ts'
